//go:build !linux

package engine

import "os"

// DataSync makes what was written durable.
func DataSync(f *os.File) error { return f.Sync() }
