//go:build tools

// Package testbed names the commands that are built, so that go.mod and go.sum hold what they need.
package testbed

import _ "sigs.k8s.io/kwok/cmd/kwok"
