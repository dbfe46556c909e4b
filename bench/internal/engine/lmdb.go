package engine

var lmdbInfo = Info{
	Name:   "lmdb",
	Title:  "B+tree in one memory-mapped file, C",
	Module: "github.com/PowerDNS/lmdb-go",
	Native: true,
	Cannot: map[Ability]string{
		CanMemory: "no cache of its own: the page cache is its cache",
		CanSettle: "nothing runs in the background",
	},
}
