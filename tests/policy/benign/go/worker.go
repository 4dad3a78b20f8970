// nacre: allowed low
package main

import (
	"fmt"
	"sync"
)

func main() {
	jobs, results := make(chan int), make(chan int)
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for job := range jobs {
				results <- job * job
			}
		}()
	}
	go func() {
		for i := 0; i < 10; i++ {
			jobs <- i
		}
		close(jobs)
		group.Wait()
		close(results)
	}()
	for result := range results {
		fmt.Println(result)
	}
}
