package published

// Basis is what a reason rests on.
type Basis string

// What reasons rest on.
const (
	Data       Basis = "published data"
	Documented Basis = "documentation or source of the engine"
	Assumption Basis = "assumption"
)

// Reason says why a measured figure differs from a published one. Empty lists mean all.
type Reason struct {
	Text    string
	Basis   Basis
	Sets    []string
	Engines []string
	Figures []string // titles
}

var reasons = map[string][]Reason{
	"W0": {
		{Text: "The article's keys are a prefix of three characters and a counter, its values one byte; the sound variant has keys of 16 B and values of 50 B, more bytes to write for everyone.", Basis: Data},
		{Text: "Whether writes were synced is not stated. A group is one batch, so there would be ten syncs in half a million pairs: syncs explain little of these figures.", Basis: Data, Figures: []string{"write"}},
		{Text: "Bolt keeps a batch in nodes that are split only at commit, and shifts the entries of a node for each pair put between them.", Basis: Documented, Engines: []string{"boltdb"}, Figures: []string{"write"}},
	},
	"W0 processes": {
		{Text: "LevelDB locks its directory: a second process gets the error of the lock, then and now.", Basis: Documented, Engines: []string{"leveldb"}},
		{Text: "Bolt takes an exclusive file lock to write and a shared one to read, so that readers wait until the writer has closed the store. How long depends on who comes first, and changes from run to run.", Basis: Documented, Engines: []string{"boltdb"}},
	},
	"W1": {
		{Text: "100,000 values of 4,096 B are 410 MB, and the engines that compress by default published 392 MB (Pebble) and 380 MB (RocksDB): the article's values hardly compressed. Those of the sound variant do, as its conditions say; that favours engines that compress.", Basis: Assumption},
		{Text: "The article does not say on which machine it ran, nor which versions it used. A durable commit costs what a sync of the disk costs.", Basis: Data, Sets: []string{"10,000 keys, sync on", "100,000 keys, sync on"}, Figures: []string{"put in order", "put at random", "delete at random", "total"}},
		{Text: "RocksDB's deletes took 4 µs each in the article's run with sync: they were not synced. In the sound variant they are.", Basis: Data, Engines: []string{"rocksdb"}, Figures: []string{"delete at random"},
			Sets: []string{"10,000 keys, sync on", "100,000 keys, sync on"}},
		{Text: "The article prints 416.88 s inside a total of 6.805 s; read as 416.88 ms.", Basis: Data, Engines: []string{"rocksdb"}, Figures: []string{"delete at random"}, Sets: []string{"100,000 keys, sync off"}},
		{Text: "Bolt writes its whole list of free pages with every commit, and deletes free pages: the cost of a commit grows with the number of keys deleted before, so figures for different numbers of keys do not compare.", Basis: Documented,
			Engines: []string{"boltdb"}, Figures: []string{"delete at random", "put at random", "total"}},
		{Text: "793 MB are both rounds of puts, kept side by side. Badger now keeps values below 1 MB in its tree, where compaction drops old ones and snappy compresses them, as its options say; that the article's version kept them in the value log is an assumption.", Basis: Assumption,
			Engines: []string{"badger"}, Figures: []string{"disk"}},
		{Text: "The article's total is the sum of its five phases. That of the sound variant holds the iteration of keys with values and the close as well, which writes what a background had not.", Basis: Data, Figures: []string{"total"}},
	},
	"W2": {
		{Text: "macOS, Go 1.11.4: before Go 1.12 a sync on macOS did not make the drive write its cache, so that a synced put cost about 0.2 ms. On a drive that really syncs it costs what a sync costs.", Basis: Documented, Figures: []string{"put"}, Engines: []string{"boltdb"}},
		{Text: "NutsDB did not sync at all in that version, and Bolt did: compare its figure with sync off.", Basis: Data, Engines: []string{"nutsdb"}, Figures: []string{"put"}},
		{Text: "The article asks for the same key every time, which every cache holds. The sound variant asks for keys at random.", Basis: Data, Sets: []string{"get"}},
		{Text: "Whether Badger synced is not stated.", Basis: Data, Engines: []string{"badger"}, Figures: []string{"put"}},
	},
	"W4": {
		{Text: "Ten pairs in one commit took Bolt 31 ms and goleveldb 0.2 ms: the one waited for the drive, the other did not. Compare Bolt's figures with sync on, those of goleveldb and Tokyo Cabinet with sync off.", Basis: Assumption, Figures: []string{"put"},
			Engines: []string{"boltdb", "bbolt", "goleveldb", "tokyocabinet"}},
		{Text: "By their documentation Pebble syncs a commit unless told not to, Pogreb never does by default. Which options the article set is not stated.", Basis: Documented, Figures: []string{"put"}, Engines: []string{"pebble", "pogreb"}},
		{Text: "Bolt keeps a batch in nodes that are split only at commit, and shifts the entries of a node for each pair put between them: the time of a batch grows with the square of its pairs, most with keys in random order.", Basis: Documented,
			Figures: []string{"put"}, Engines: []string{"boltdb", "bbolt"}},
		{Text: "The article put the set many times over into one store (testing.B) and gives the size at the end; in the sound variant the size is that after the set has been put once.", Basis: Assumption, Figures: []string{"disk"}},
		{Text: "155 MB of records became 94 MB in goleveldb, which compresses by snappy: 1.65 times, much like the generated data of the laboratory.", Basis: Data, Figures: []string{"disk"}, Engines: []string{"goleveldb"}, Sets: []string{"100,000 pairs"}},
		{Text: "B/op counts the Go heap only. What an engine in C allocates is in neither figure.", Basis: Documented, Figures: []string{"put B/op", "get B/op", "put allocs/op", "get allocs/op"}, Engines: []string{"tokyocabinet"}},
	},
}
