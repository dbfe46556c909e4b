//go:build !cgo || !(native || native_lmdb)

package engine

func init() {
	registerAbsent(lmdbInfo, whyNoLMDB, "native_lmdb")
}
