package published

// Of W1 the program is public: github.com/huxinhuxin/kvtest.
var lifecycleReasons = []Reason{
	{
		Text:  "The article has one value of 4,096 random letters and digits for every key. Pebble and RocksDB compress blocks of 4 KiB by default, which hold one such pair: they find nothing to shorten. The values of the sound variant do compress, as its conditions say; that favours engines that compress.",
		Basis: Program, Proof: "kvtest: commom.go randomString, main.go comtestdb; pebble b62f76615457: internal/base/options.go DefaultBlockSize; RocksDB: table.h BlockBasedTableOptions.block_size",
	},
	{
		Text:  "The article draws its random keys with repetition: some 37 % of its deletes find nothing, 23 % of the keys are missing at the end. Here each key comes once.",
		Basis: Program, Proof: "kvtest: main.go randdel, randwrite, randRead (rand.Int31n)", Figures: []string{"get at random", "delete at random", "put at random", "iterate", "disk", "total"},
	},
	{
		Text:  "The machine is not in the published data. A durable commit costs what a sync of its disk costs.",
		Basis: Data, Proof: "nothing says on what disk it ran", Sets: []string{"10,000 keys, sync on", "100,000 keys, sync on"}, Figures: []string{"put in order", "put at random", "delete at random", "total"},
	},
	{
		Text:  "RocksDB's deletes took 4 µs each with sync as without, a fortieth of its puts: none was synced. The program asks for the sync as it does for puts, so why is not known. In the sound variant they are synced.",
		Basis: Measured, Proof: "RocksDB 7.8 takes 4 µs for a delete without sync and more than a sync of the disk with it; kvtest: rocksdb.go Gorocksdb.Del (SetSync(db.Bsync)); RocksDB's WriteOptions.sync is off by default (options.h)",
		Engines: []string{"rocksdb"}, Figures: []string{"delete at random"}, Sets: []string{"10,000 keys, sync on", "100,000 keys, sync on"},
	},
	{
		Text:  "The article prints 416.88 s inside a total of 6.805 s; read as 416.88 ms.",
		Basis: Data, Proof: "the other phases and the total", Engines: []string{"rocksdb"}, Figures: []string{"delete at random"}, Sets: []string{"100,000 keys, sync off"},
	},
	{
		Text:  "Bolt writes its whole list of free pages with every commit and searches it from the start, and deletes free pages: the cost of a commit grows with the number of keys deleted before, so figures for different numbers of keys do not compare.",
		Basis: Source, Proof: "boltdb v1.3.1: tx.go Tx.Commit, freelist.go freelist.write and freelist.allocate",
		Engines: []string{"boltdb"}, Figures: []string{"delete at random", "put at random", "total"},
	},
	{
		Text:  "The sizes are of the disk's blocks, in MiB, as du prints them.",
		Basis: Measured, Proof: "the published variant with 10,000 keys makes Bolt allocate 58.97 MiB; published are 59", Figures: []string{"disk"},
	},
	{
		Text:  "793 MiB are both rounds of puts: the article's version put values of 1 KiB and more into its value log, which nothing had collected. Now they stay in the tree up to 1 MiB, where compaction drops old ones, and compressed.",
		Basis: Source, Proof: "badger v3.2011.1 (of kvtest's go.mod): options.go DefaultOptions (ValueThreshold 1 << 10); v4.9.6: ValueThreshold 1 << 20, Compression Snappy; 2 times 100,000 values of 4,096 B are 781 MiB",
		Engines: []string{"badger"}, Figures: []string{"disk"},
	},
	{
		Text:  "Badger read values ahead while the article iterated, for it left that option on; here its iteration of keys does not.",
		Basis: Program, Proof: "kvtest: badgerdb.go Badgerdb.GetAll; badger v3.2011.1: iterator.go DefaultIteratorOptions (PrefetchValues: true)", Engines: []string{"badger"}, Figures: []string{"iterate"},
	},
	{
		Text:  "The article's total goes from before the opening to after the close. That of the published variant does too; that of the sound variant leaves the opening and the iteration of keys out and has the iteration of keys with values in it.",
		Basis: Program, Proof: "kvtest: main.go comtestdb (t1 before db.Open, time.Since after db.Close)", Figures: []string{"total"},
	},
}
