package engine

var tokyoHashInfo = Info{
	Name:   "tokyo-hash",
	Title:  "Tokyo Cabinet's hash database, C",
	Native: true,
	Cannot: tokyoCannot(map[Ability]string{
		CanOrder:  "a hash database has no order",
		CanScan:   "a hash database has no order",
		CanMemory: "maps its file; the cache of records that it may have is off by default, and counted in records",
	}),
}

var tokyoTreeInfo = Info{
	Name:   "tokyo-btree",
	Title:  "Tokyo Cabinet's B+tree database, C",
	Native: true,
	Cannot: tokyoCannot(map[Ability]string{
		CanMemory: "its cache is counted in nodes, not in bytes",
	}),
	LosesAtKill:  "what single puts and deletes change stays in its own memory; a batch is a transaction, which writes it",
	KeepsBatches: true,
}

func tokyoCannot(cannot map[Ability]string) map[Ability]string {
	cannot[CanView] = "no read transactions: its transaction is for one writer"
	cannot[CanProcesses] = "its lock admits one writer or several readers, not both"
	cannot[CanSettle] = "nothing runs in the background"
	return cannot
}
