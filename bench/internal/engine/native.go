package engine

// Why a native row has no driver. The build script knows it and sets these with
// -ldflags -X; a plain `go build` leaves them empty.
var (
	whyNoLMDB         string
	whyNoLevelDB      string
	whyNoRocksDB      string
	whyNoTokyoCabinet string
)

// registerAbsent keeps the row of a library this program was built without, so
// that tables show it with the reason.
func registerAbsent(info Info, why, tag string) {
	if why == "" {
		why = "built without cgo and the tag " + tag + "; `make bench` finds the library and sets it"
	}
	info.Absent = why
	Register(Driver{Info: info})
}

// nativeMemory divides what a store may use: half to the block cache, half to
// write buffers.
func nativeMemory(bytes int64) (cache, buffers int) { return int(bytes / 2), int(bytes / 2) }

// bloomBits are the bits for each key of the Bloom filters that the headers of LevelDB and
// RocksDB recommend: 10 is what LevelDB's calls a good value, RocksDB's says 9.9. The
// documentation of goleveldb and Pebble shows 10.
const bloomBits = 10
