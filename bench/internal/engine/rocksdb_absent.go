//go:build !cgo || !(native || native_rocksdb)

package engine

func init() {
	registerAbsent(rocksdbInfo, whyNoRocksDB, "native_rocksdb")
}
