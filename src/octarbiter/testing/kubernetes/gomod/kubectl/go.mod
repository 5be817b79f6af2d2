// Only marks the module: each kubectl is built with a module file of its own beside this one (-modfile=v1.N.mod).
module octarbiter/testbed/kubectl

go 1.20
