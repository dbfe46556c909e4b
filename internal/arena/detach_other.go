//go:build !linux || arena_heap

package arena

import "errors"

// CanDetach says that Detach works.
const CanDetach = false

// Detach is for mappings of files, which only Linux has.
func Detach([]byte, func(dst []byte) error) error { return errors.ErrUnsupported }
