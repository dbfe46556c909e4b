package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cairndb/cairn/bench/internal/engine"
)

// pureSum is the SHA-256 of the pure-Go build beside this program. The build script
// sets it with -ldflags -X in a program that has native rows; it is empty otherwise.
var pureSum string

// childProgram is what runs the cells of an engine. Rows of pure Go run in a
// program without the C libraries, which take some 20 MB of resident memory by
// their mere presence.
func childProgram(name string) (string, error) {
	program, err := os.Executable()
	if err != nil || pureSum == "" {
		return program, err
	}
	d, err := engine.Find(name)
	if err != nil || d.Info.Native {
		return program, err
	}
	pure := program + ".pure"
	return pure, checkPure(pure, pureSum)
}

var (
	pureLock    sync.Mutex
	pureChecked = map[string]bool{} // path and sum
)

// checkPure makes sure once that a file is the build this program was made with.
func checkPure(file, sum string) error {
	pureLock.Lock()
	defer pureLock.Unlock()
	if pureChecked[file+sum] {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("the pure-Go half of this program (make .bin/cairn-bench builds both): %w", err)
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("%s is of another build than this program: make .bin/cairn-bench builds both", file)
	}
	pureChecked[file+sum] = true
	return nil
}
