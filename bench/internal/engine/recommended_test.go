package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"go.etcd.io/bbolt"
)

// What an engine's documentation recommends is done, and is said among its settings.
func TestRecommendedSettings(t *testing.T) {
	for name, c := range map[string]struct {
		said string
		done func(Store) bool
	}{
		"bbolt":  {"FreelistMapType", func(s Store) bool { return s.(bboltStore).db.FreelistType == bbolt.FreelistMapType }},
		"pebble": {"FormatNewest", func(s Store) bool { return s.(pebbleStore).db.FormatMajorVersion() == pebble.FormatNewest }},
	} {
		d, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(d.Settings(Options{}), func(s Setting) bool { return strings.Contains(s.Option, c.said) }) {
			t.Errorf("%s does not say that it sets %s", name, c.said)
		}
		s, err := d.Open(t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !c.done(s) {
			t.Errorf("%s is not opened with %s", name, c.said)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
