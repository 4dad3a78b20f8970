# nacre: found file.credentials
print(open("/var/../etc//./shadow").read())
