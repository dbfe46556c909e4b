package data

import (
	"fmt"
	"os"
	"path/filepath"
)

// saved is where pools of this process come from, if they are there.
var saved string

// SavePool writes the pool of a seed to dir, if there is room, for processes that find it
// there: to read it takes a thirtieth of the time of making it.
func SavePool(dir string, seed uint64) {
	name := poolFile(dir, seed)
	if os.WriteFile(name, makePool(seed), 0o600) != nil {
		os.Remove(name)
	}
}

// UsePools makes NewSource of this process read the pools that were saved to dir, and make
// only those that are not there. It is called before NewSource.
func UsePools(dir string) { saved = dir }

func poolFile(dir string, seed uint64) string {
	return filepath.Join(dir, fmt.Sprintf("pool-%d", seed))
}

// pool reads the pool of a seed if it was saved, and makes it otherwise.
func pool(seed uint64) []byte {
	if saved != "" {
		if b, err := os.ReadFile(poolFile(saved, seed)); err == nil && len(b) == PoolBytes {
			return b
		}
	}
	return makePool(seed)
}
