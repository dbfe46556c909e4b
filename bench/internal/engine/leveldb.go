package engine

var leveldbInfo = Info{
	Name:   "leveldb",
	Title:  "log-structured merge tree, C++",
	Module: "github.com/jmhodges/levigo",
	Native: true,
	Cannot: map[Ability]string{
		CanProcesses: "locks its directory: one process only",
	},
}
