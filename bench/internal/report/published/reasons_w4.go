package published

var wholeSetReasons = []Reason{
	{
		Text:  "The article's figures are means over as many passes as Go ran in 10 s over one store: for some engines up to millions of passes of overwriting, for others a single one into an empty store.",
		Basis: Data, Proof: "its command is go test -bench -benchmem -benchtime 10s", Figures: []string{"put", "put B/op", "put allocs/op", "disk"},
	},
	{
		Text:  "Bolt's commit waits for two syncs, and macOS made the drive write its cache for each: 31 ms for ten pairs. Compare with sync on.",
		Basis: Source, Proof: "boltdb v1.3.1: boltsync_unix.go fdatasync, tx.go Tx.write and Tx.writeMeta; Go: internal/poll/fd_fsync_darwin.go FD.Fsync (F_FULLFSYNC)",
		Figures: []string{"put"}, Engines: []string{"boltdb", "bbolt"}, Sets: []string{"10 pairs", "10,000 pairs"},
	},
	{
		Text:  "goleveldb's pairs were put one by one, not in a batch, and not synced, which it does only when told to. Here the set is one batch. Above its write buffer (4 MiB) goleveldb writes a batch into tables at once and syncs each of them and the manifest, whether it is asked to sync or not; the C++ library writes any batch to its log.",
		Basis: Measured, Proof: "by allocations: 3.6 for a pair of ten are published, DB.Put takes 3.6 here and a batch 0.6 (or 1.9 if it is a new one each time); for 10,000 pairs 4.7 are published, DB.Put takes 5.4 and a batch 2.3. goleveldb 126854af5e6d: db_write.go DB.Put, DB.writeLocked (wo.GetSync) and DB.Write (OpenTransaction), table.go tWriter.finish, session_util.go session.flushManifest; leveldb 1.23: db_impl.cc DBImpl::Write",
		Figures: []string{"put", "put B/op", "put allocs/op"}, Engines: []string{"goleveldb"},
	},
	{
		Text:  "3,318 ns for ten pairs are 332 ns for a pair: Tokyo Cabinet copies a record into its mapped file, without a system call below 64 MiB but for one for each 32 KiB by which the file grows, and without a sync ever, unless it is told to. Here the batch is a transaction, whose log it writes first: that costs more.",
		Basis: Source, Proof: "tokyocabinet 1.4.48: tchdb.c tchdbput, tchdbseekwrite (memcpy into hdb->map; ftruncate by HDBXFSIZINC; tchdbwalwrite in a transaction), HDBDEFXMSIZ",
		Figures: []string{"put"}, Engines: []string{"tokyocabinet"},
	},
	{
		Text:  "A synced commit is Pebble's default, none is Pogreb's. Which options the article set is not known: its program is not public. But 39 MB of heap for 155.6 MB of pairs cannot be one batch, nor can 58 us for a pair be a sync of each: here the set is one batch.",
		Basis: Source, Proof: "pebble v2.1.7: options.go WriteOptions.GetSync (nil is true); pogreb v0.10.2: db.go Open (syncWrites only if BackgroundSyncInterval is -1); the heap of a batch: pebble v2.1.7 batch.go", Figures: []string{"put", "put B/op"}, Engines: []string{"pebble", "pogreb"},
	},
	{
		Text:  "42 s and 35 s are one pass into an empty store. Bolt keeps the whole batch in one node, which is split only at commit, shifts the entries behind each new pair, and copies all pairs whenever its file outgrows its mapping. A second pass over the same keys shifts nothing, and outgrows the mapping once in place of a dozen times.",
		Basis: Source, Proof: "boltdb v1.3.1: node.go node.put, node.dereference (called by db.go DB.mmap); bbolt v1.5.0 likewise. Measured here: one batch of 100,000 pairs of 1,556 B into an empty store allocates 5.0 GB in 5.9 million pieces (published: 4.1 GB in 5.2 million) and leaves a file of 214 MiB (published: 224); a second one allocates 0.3 GB",
		Figures: []string{"put", "put B/op", "put allocs/op", "disk"}, Engines: []string{"boltdb", "bbolt"}, Sets: []string{"100,000 pairs"},
	},
	{
		Text:  "2.2 GiB are 15 times the set: Pogreb appends in every pass, and drops overwritten records only when it compacts, which it does not by itself unless told to. In the sound variant the size is that after the set has been put once.",
		Basis: Source, Proof: "pogreb v0.10.2: options.go Options.BackgroundCompactionInterval (0 disables it), datalog.go datalog.writeRecord",
		Figures: []string{"disk"}, Engines: []string{"pogreb"}, Sets: []string{"100,000 pairs"},
	},
	{
		Text:  "Sizes are of the disk's blocks and after all passes; in the sound variant the size is that after the set has been put once.",
		Basis: Data, Proof: "the article prints du -h", Figures: []string{"disk"},
	},
	{
		Text:  "528 KiB for ten pairs are Tokyo Cabinet's bucket array, which it makes for a set of any size.",
		Basis: Source, Proof: "tokyocabinet 1.4.48: tchdb.c HDBDEFBNUM (131,071 buckets of 4 B)", Figures: []string{"disk"}, Engines: []string{"tokyocabinet"}, Sets: []string{"10 pairs"},
	},
	{
		Text:  "155.6 MB of records became 94 MiB in goleveldb, which compresses by snappy: at least 1.58 times, much like the data of the laboratory.",
		Basis: Data, Proof: "raw_bytes and disk of the set; goleveldb 126854af5e6d: opt/options.go DefaultCompressionType", Figures: []string{"disk"}, Engines: []string{"goleveldb"}, Sets: []string{"100,000 pairs"},
	},
	{
		Text:  "B/op counts the Go heap only. What an engine in C allocates is not in it.",
		Basis: Source, Proof: "Go: testing/benchmark.go B.StopTimer (runtime.ReadMemStats)", Figures: []string{"put B/op", "get B/op", "put allocs/op", "get allocs/op"}, Engines: []string{"tokyocabinet"},
	},
}
