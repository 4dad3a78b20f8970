# nacre: found file.credentials
print(open("/etc/shadow").read())
