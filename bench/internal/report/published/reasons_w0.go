package published

var pagedReasons = []Reason{
	{
		Text:  "The article's page names neither its keys nor its values. That they were tiny is taken from LevelDB's size, 7.6 B a pair, compressed; LMDB's 3.6 MiB are 75 B a pair, two to four times what such pairs take in its pages: why is not known. The published variant takes a prefix of three characters, a counter and a value of one byte, the sound variant keys of 16 B and values of 50 B: more bytes to write for everyone.",
		Basis: Unproven, Proof: "370 KB and 3.6 MiB for 50,000 pairs; a pair of 8 and 1 B takes 20 B of a page of LMDB's, which are half full to full",
	},
	{
		Text:  "Whether writes were synced is not said. If a group is one batch, as it seems, there would be ten commits in half a million pairs: syncs explain little of these figures.",
		Basis: Data, Proof: "10 groups of 50,000 pairs, each written at once", Figures: []string{"write"},
	},
	{
		Text:  "Bolt keeps a batch in one node, which is split only at commit, and shifts the entries behind each new pair.",
		Basis: Source, Proof: "boltdb v1.3.1: node.go node.put (the copy of n.inodes), node.spill and node.split (called by Tx.Commit)", Engines: []string{"boltdb"}, Figures: []string{"write"},
	},
	{
		Text:  "The page calls this LevelDB one in C, but what it says on a second open is goleveldb's message word for word, not that of the C++ library. Compare the row of goleveldb too.",
		Basis: Source, Proof: "goleveldb 126854af5e6d: storage/file_storage_unix.go setFileLock returns flock's error, which Go prints as published; leveldb 1.23: util/env_posix.cc LockFile says \"IO error: lock FILE: Resource temporarily unavailable\"", Engines: []string{"leveldb"},
	},
	{
		Text:  "Bolt's size is the length of its file: a power of two up to 8 MiB, beyond that what is needed and up to 16 MiB more, part of it not written.",
		Basis: Source, Proof: "boltdb v1.3.1: db.go DB.grow (db.datasz below AllocSize, which is 16 MiB), DB.mmapSize; 50,000 such pairs make a file of 4 MiB here, of which 2.5 MiB are allocated", Engines: []string{"boltdb"}, Figures: []string{"disk per group"},
	},
}

var processesReasons = []Reason{
	{
		Text:  "LevelDB and goleveldb lock their directory: a second process gets the error of the lock, then and now.",
		Basis: Source, Proof: "leveldb 1.23: util/env_posix.cc LockOrUnlock (F_SETLK); goleveldb 126854af5e6d: storage/file_storage_unix.go setFileLock (LOCK_NB)", Engines: []string{"leveldb"},
	},
	{
		Text:  "Bolt takes an exclusive file lock to write and a shared one to read, for as long as the store is open: readers wait for the writer's close. It asks for the lock every 50 ms, and the three published times lie 51 ms apart: there each reader waited for the one before it, so they had opened the store to write. Readers that open it to read, as here, get in together. The published times have that wait in them; here readers that wait have no times.",
		Basis: Source, Proof: "boltdb v1.3.1: db.go Open, bolt_unix.go flock (time.Sleep(50 * time.Millisecond)); published 5.9, 57.0 and 107.6 ms", Engines: []string{"boltdb"}, Figures: []string{"write beside readers", "read, slowest of three"},
	},
	{
		Text:  "5,000 writes took 25 ms (LMDB) and 51 ms (Bolt), less than as many synced commits can: they were one transaction, or not synced. Here each put is a commit of its own.",
		Basis: Unproven, Proof: "the times say it; the program is not public", Engines: []string{"lmdb", "boltdb"}, Figures: []string{"write alone", "write beside readers"},
	},
}
