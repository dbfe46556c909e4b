package engine

var rocksdbInfo = Info{
	Name:   "rocksdb",
	Title:  "log-structured merge tree, C++, from LevelDB",
	Module: "github.com/linxGnu/grocksdb",
	Native: true,
}
