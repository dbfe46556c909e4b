package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"go.etcd.io/bbolt"
)

// What an engine's documentation recommends is done, and is said among its settings.
func TestRecommendedSettings(t *testing.T) {
	for _, c := range []struct {
		name, said string
		done       func(Store) bool
	}{
		{"bbolt", "FreelistMapType", func(s Store) bool { return s.(bboltStore).db.FreelistType == bbolt.FreelistMapType }},
		{"bbolt", "NoFreelistSync", func(s Store) bool { return s.(bboltStore).db.NoFreelistSync }},
		{"pebble", "FormatNewest", func(s Store) bool { return s.(pebbleStore).db.FormatMajorVersion() == pebble.FormatNewest }},
		{"pebble", "bloom.FilterPolicy(10)", func(Store) bool { return pebbleOptions(Options{}).Levels[0].FilterPolicy == bloom.FilterPolicy(10) }},
		{"goleveldb", "NewBloomFilter(10)", func(s Store) bool { return s.(goleveldbStore).opts.Filter == filter.NewBloomFilter(10) }},
	} {
		d, err := Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(d.Settings(Options{}), func(s Setting) bool { return strings.Contains(s.Option, c.said) }) {
			t.Errorf("%s does not say that it sets %s", c.name, c.said)
		}
		s, err := d.Open(t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !c.done(s) {
			t.Errorf("%s is not opened with %s", c.name, c.said)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
