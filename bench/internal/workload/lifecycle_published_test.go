package workload

import (
	"bytes"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
)

const lag = 40 * time.Millisecond

// laggard is slow to open and to close, and keeps what it is told between the two.
type laggard struct{ *sharedStore }

func (l laggard) Close() error { time.Sleep(lag); return nil }

func (l laggard) Delete(key []byte) error {
	delete(l.values, string(key))
	return nil
}

func (l laggard) Keys(see func([]byte) error) error {
	return l.Scan(nil, len(l.values), func(key, _ []byte) error { return see(key) })
}

func TestPublishedTotalGoesFromOpenToClose(t *testing.T) {
	shared := newShared()
	d := engine.Driver{Info: engine.Info{Name: "laggard"}, Open: func(string, engine.Options) (engine.Store, error) {
		time.Sleep(lag)
		return laggard{shared}, nil
	}}
	rec := NewRecorder("")
	p := Params{Workload: "w1", Variant: "published", N: 20, ValueBytes: 64, Seed: 1}
	if err := runLifecyclePublished(rec, d, t.TempDir(), p); err != nil {
		t.Fatal(err)
	}
	total, put := rec.Metrics["total"], rec.Metrics["put"]
	if total < float64(2*lag) || put <= 0 || put > total {
		t.Errorf("total %v, of which opening and closing take %v", time.Duration(total), 2*lag)
	}
}

func TestPublishedValueIsLettersAndDigits(t *testing.T) {
	value := oneValue(4096, 1)
	if len(value) != 4096 || len(bytes.Trim(value, lettersAndDigits)) > 0 || bytes.Count(value, value[:8]) != 1 {
		t.Errorf("%.80q", value)
	}
	if bytes.Equal(value, oneValue(4096, 2)) || !bytes.Equal(value, oneValue(4096, 1)) {
		t.Error("it is not the seed's")
	}
}
