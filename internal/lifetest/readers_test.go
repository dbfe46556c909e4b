package lifetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/cairndb/cairn"
)

// readUntilKilled is a child that reads the store, again and again until it is killed, and says "v" when it has
// found it whole.
func readUntilKilled() {
	var last [killWriters]uint64
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(time.Now().UnixNano())))
	for {
		db, err := cairn.Open(os.Args[1], &cairn.Options{ReadOnly: true, Memory: killMemory})
		if err != nil {
			fmt.Println("e open:", err)
			return
		}
		for range 1 + r.IntN(200) {
			now, err := verifyCommits(db)
			if err == nil {
				err = grown(last, now)
			}
			if err != nil {
				fmt.Println("e", err)
				return
			}
			last = now
			fmt.Println("v")
		}
		if err := db.Close(); err != nil {
			fmt.Println("e close:", err)
			return
		}
	}
}

// grown returns an error unless all commits up to least are among those found.
func grown(least, found [killWriters]uint64) error {
	for w := range found {
		if found[w] < least[w] {
			return fmt.Errorf("writer %d: found commit %d, though %d was there before", w, found[w], least[w])
		}
	}
	return nil
}
