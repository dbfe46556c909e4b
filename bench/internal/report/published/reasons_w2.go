package published

// Of W2 the program is public: github.com/xujiajun/gokvstore-bench.
var singleReasons = []Reason{
	{
		Text:  "macOS, Go 1.11.4: Go used fsync there, which leaves data in the drive's own cache; since Go 1.12 it uses F_FULLFSYNC, which does not. On a drive that really syncs, a synced put costs what its syncs cost; Bolt has two in each commit.",
		Basis: Source, Proof: "Go: internal/poll/fd_fsync_darwin.go FD.Fsync, issue 26650; boltdb v1.3.1: boltsync_unix.go fdatasync, tx.go Tx.write and Tx.writeMeta", Figures: []string{"put"}, Engines: []string{"boltdb"},
	},
	{
		Text:  "NutsDB synced: its v0.3.0, which came out that day, gave up writing through a mapping for it, says its author. It was made optional four days later. Compare its figure with sync on.",
		Basis: Unproven, Proof: "github.com/nutsdb/nutsdb issue 16 (v0.3.0 \"use sync\"; who wants none is to take a version before) and pull request 15, both of 2019-03-11 and 12; CHANGELOG.md: HintKeyAndRAMIdxMode, which the benchmark uses, is new in v0.3.0, SyncEnable in v0.4.0 of 2019-03-15; before v0.3.0 the same benchmark printed 2,472 ns on the same machine. The source of v0.3.0 was not to be had",
		Engines: []string{"nutsdb"}, Figures: []string{"put"},
	},
	{
		Text:  "The article asks for the same key every time, which every cache holds. The sound variant asks for keys at random.",
		Basis: Program, Proof: "gokvstore-bench: bench_boltdb_test.go BenchmarkBoltDBGet and its likes (number 99)", Sets: []string{"get"},
	},
	{
		Text:  "Badger synced, for it did so by default then: its log was opened with O_DSYNC. Now its default is not to. Compare its figure with sync on.",
		Basis: Source, Proof: "badger v1.5.3 and v1.5.5, before and after: options.go DefaultOptions (SyncWrites: true), y/y.go CreateSyncedFile, y/file_dsync.go; v4.9.6: SyncWrites: false; gokvstore-bench: bench_badgerdb_test.go init",
		Engines: []string{"badger"}, Figures: []string{"put"},
	},
	{
		Text:  "The article's get of Badger finds the key and never reads its value; here it does.",
		Basis: Program, Proof: "gokvstore-bench: bench_badgerdb_test.go BenchmarkBadgerDBGet (txn.Get alone)", Engines: []string{"badger"}, Sets: []string{"get"},
	},
}
