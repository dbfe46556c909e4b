package arena

import (
	"runtime"
	"runtime/debug"
)

// Survives calls f and reports false if that ended with a memory fault, as access to a
// mapping does if the disk is broken, or the file was cut.
func Survives(f func()) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(interface {
				runtime.Error
				Addr() uintptr
			}); !fault {
				panic(r)
			}
		}
	}()
	f()
	return true
}
