package workload

import (
	"fmt"
	"sync"

	"github.com/cairndb/cairn/bench/internal/data"
)

// lastValues are the values made last: a cell that does its work several times does not
// make them anew, which takes longer than the work.
var lastValues values

// values are those of a seed, or of a file of the user's.
type values struct {
	mu      sync.Mutex
	seed    uint64
	file    data.File // zero: the pool's
	source  *data.Source
	records *data.Records // nil: the pool's
}

// of returns the values of a cell, with the records they are if they are the user's. The
// run has read the user's file before; if that cannot be done again, nothing can be
// measured in this process.
func (v *values) of(p Params) (*data.Source, *data.Records) {
	var file data.File
	if p.Data != nil {
		file = *p.Data
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.source != nil && v.seed == p.Seed && v.file == file:
	case p.Data == nil:
		v.source, v.records = data.NewSource(p.Seed), nil
	default:
		records, err := file.Read()
		if err != nil {
			panic(fmt.Sprintf("the records of -data cannot be read again: %v", err))
		}
		v.source, v.records = records.Source(p.Seed), records
	}
	v.seed, v.file = p.Seed, file
	return v.source, v.records
}
