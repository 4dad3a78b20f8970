// nacre: found native.syscall
package main

import (
	"syscall"
)

func main() {
	syscall.Syscall(59, 0, 0, 0)
}
