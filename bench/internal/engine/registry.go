package engine

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// rows is the order of the tables; engines it does not know follow.
var rows = []string{
	"cairn", "lmdb", "boltdb", "bbolt", "leveldb", "goleveldb", "rocksdb", "pebble", "badger", "nutsdb", "nutsdb-keys",
	"pogreb", "tokyo-hash", "tokyo-btree", "gomap", "floor", "floor-prealloc",
}

var drivers = map[string]Driver{}

// Register adds a driver; each engine's file does so in its init function.
func Register(d Driver) {
	if _, twice := drivers[d.Info.Name]; twice {
		panic("engine registered twice: " + d.Info.Name)
	}
	if !contains(rows, d.Info.Name) {
		rows = append(rows, d.Info.Name)
	}
	drivers[d.Info.Name] = d
}

// All returns the drivers in the order of the tables.
func All() []Driver {
	var all []Driver
	for _, name := range rows {
		if d, ok := drivers[name]; ok {
			all = append(all, d)
		}
	}
	return all
}

// Find returns the driver of a name.
func Find(name string) (Driver, error) {
	if d, ok := drivers[name]; ok {
		return d, nil
	}
	return Driver{}, fmt.Errorf("no engine %q; there are %s", name, strings.Join(Names(All()), ", "))
}

// Choose returns the named drivers in the order of the tables; no names means all.
func Choose(names []string) ([]Driver, error) {
	if len(names) == 0 {
		return All(), nil
	}
	for _, name := range names {
		if _, err := Find(name); err != nil {
			return nil, err
		}
	}
	var chosen []Driver
	for _, d := range All() {
		if contains(names, d.Info.Name) {
			chosen = append(chosen, d)
		}
	}
	return chosen, nil
}

// Names returns the names of drivers.
func Names(ds []Driver) []string {
	names := make([]string, len(ds))
	for i, d := range ds {
		names[i] = d.Info.Name
	}
	return names
}

// Version says which module and, of a native row, which library this program has:
// "v1.9.4, liblmdb 0.9.35". It is empty for an absent row.
func (d Driver) Version() string {
	if d.Info.Absent != "" {
		return ""
	}
	version := Version(d.Info.Module)
	if d.Library == nil {
		return version
	}
	if version != "" {
		version += ", "
	}
	return version + d.Library()
}

// Version returns the version of a module this program was built with; empty if
// the build does not say.
func Version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if module == "" || !ok {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path != module {
			continue
		}
		if dep.Replace != nil {
			return "this tree"
		}
		return dep.Version
	}
	return ""
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}
