//go:build !cgo || !(native || native_leveldb)

package engine

func init() {
	registerAbsent(leveldbInfo, whyNoLevelDB, "native_leveldb")
}
