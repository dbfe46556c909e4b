package engine

import "github.com/nutsdb/nutsdb"

func init() {
	Register(Driver{
		Info: Info{
			Name:   "nutsdb-keys",
			Title:  "log with keys indexed in RAM (HintKeyAndRAMIdxMode)",
			Module: "github.com/nutsdb/nutsdb",
			Cannot: nutsdbCannot,
		},
		Settings: nutsdbKeysSettings,
		Open: func(dir string, opts Options) (Store, error) {
			return openNutsdbMode(dir, opts, nutsdb.HintKeyAndRAMIdxMode)
		},
	})
}

func nutsdbKeysSettings(opts Options) []Setting {
	mode := Setting{"Options.EntryIdxMode = HintKeyAndRAMIdxMode", "this row is that mode; the default keeps values in RAM too"}
	return append([]Setting{mode}, nutsdbSettings(opts)...)
}
