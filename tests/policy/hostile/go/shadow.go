// nacre: found file.credentials
package main

import (
	"os"
)

func main() {
	os.ReadFile("/etc/shadow")
}
