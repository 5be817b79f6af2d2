"""What a cluster does by itself: places pods, runs Jobs, clears away what nobody owns, watches over nodes."""
