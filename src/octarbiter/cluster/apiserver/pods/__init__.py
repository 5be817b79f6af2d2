"""What can be done to a pod besides writing it?"""
