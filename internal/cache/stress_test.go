package cache

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/epoch"
)

// worker reads pages at random, keeps some pinned beyond the epoch, and now and
// then drops one or meets a read error.
type worker struct {
	c     *Cache
	r     *rand.Rand
	e     *epoch.Slot
	slots []Slot
	held  []held
	bad   *atomic.Int64
	errs  *atomic.Int64
}

type held struct {
	p  *Page
	id uint64
}

var errInjected = errors.New("injected")

func (w *worker) step() {
	switch w.r.IntN(40) {
	case 0:
		w.c.Drop(&w.slots[w.r.IntN(len(w.slots))])
	case 1:
		w.c.Room(int64(w.r.IntN(1 << 20)))
	case 2:
		w.c.Stats()
	case 3:
		w.c.SetScarce(w.r.IntN(2) == 0)
	default:
		w.read(uint64(w.r.IntN(len(w.slots))))
	}
	for len(w.held) > 6 {
		w.verify(w.held[0])
		w.held[0].p.Unpin()
		w.held = w.held[1:]
	}
}

func (w *worker) read(id uint64) {
	w.e.Enter()
	defer w.e.Exit()
	s := &w.slots[id]
	p := w.c.Load(s)
	if p == nil {
		fail, fill := w.r.IntN(50) == 0, w.c.Fill
		if w.r.IntN(2) == 0 {
			fill = w.c.FillOnce
		}
		var err error
		p, err = fill(s, 4096*(1+int(id%9)), func(dst []byte) error {
			write(dst, id)
			if fail {
				return errInjected
			}
			return nil
		})
		if err != nil {
			if !errors.Is(err, errInjected) {
				w.bad.Add(1)
			}
			w.errs.Add(1)
			return
		}
	}
	if w.r.IntN(3) == 0 {
		p.Pin()
		w.held = append(w.held, held{p, id})
	}
	w.verify(held{p, id})
}

func (w *worker) verify(h held) {
	if d := h.p.Data(); len(d) != 4096*(1+int(h.id%9)) || !intact(d, h.id) {
		w.bad.Add(1)
	}
}

// Many goroutines, a budget for a fraction of the pages: nobody may ever read
// bytes that are not those of the page asked for, and nothing may leak.
func TestStress(t *testing.T) {
	before := arena.Mapped()
	b, d := arena.NewBudget(1<<20), epoch.New()
	c := New(b, d)
	slots := make([]Slot, 200)
	var bad, errs atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			w := &worker{c: c, r: rand.New(rand.NewPCG(uint64(g), 9)), e: d.Register(), slots: slots, bad: &bad, errs: &errs}
			defer w.e.Release()
			for range 4000 {
				w.step()
			}
			for _, h := range w.held {
				w.verify(h)
				h.p.Unpin()
			}
		})
	}
	wg.Wait()
	st := c.Stats()
	t.Logf("%+v", st)
	if bad.Load() != 0 || errs.Load() == 0 || st.Evictions == 0 {
		t.Errorf("%d bad reads, %d injected errors seen", bad.Load(), errs.Load())
	}
	if st.PinnedBytes != 0 || st.ZombieBytes != 0 {
		t.Errorf("%d bytes pinned, %d zombies after all was unpinned", st.PinnedBytes, st.ZombieBytes)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if n := arena.Mapped() - before; n != 0 || b.Used() != 0 || d.Pending() != 0 {
		t.Errorf("%d mapped, %d counted, %d retired functions left", n, b.Used(), d.Pending())
	}
}

// Close amid the traffic: readers get their pages or ErrClosed, and the last of
// them frees the last byte.
func TestStressClose(t *testing.T) {
	before := arena.Mapped()
	for seed := range uint64(10) {
		b, d := arena.NewBudget(1<<20), epoch.New()
		c := New(b, d)
		slots := make([]Slot, 60)
		var bad, errs atomic.Int64
		var wg sync.WaitGroup
		start := make(chan bool)
		for g := range 4 {
			wg.Go(func() {
				w := &worker{c: c, r: rand.New(rand.NewPCG(uint64(g), seed)), e: d.Register(), slots: slots, bad: &errs, errs: &errs}
				defer w.e.Release()
				<-start
				for range 200 {
					w.step()
				}
				for _, h := range w.held {
					if !intact(h.p.Data(), h.id) {
						bad.Add(1)
					}
					h.p.Unpin()
				}
			})
		}
		close(start)
		_ = c.Close() // whatever is in use
		wg.Wait()
		d.Collect()
		if err := c.Close(); err != nil || bad.Load() != 0 {
			t.Errorf("%v, %d bad reads", err, bad.Load())
		}
	}
	if n := arena.Mapped() - before; n != 0 {
		t.Errorf("%d bytes mapped", n)
	}
}

// Goroutines that only read, one more than there are processors at the least, so
// that some are interrupted inside their epoch: how far is the budget exceeded?
func BenchmarkFillParallel(b *testing.B) {
	budget, d := arena.NewBudget(16<<20), epoch.New()
	c := New(budget, d)
	defer c.Close()
	slots := make([]Slot, 4000)
	var most atomic.Int64
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		e := d.Register()
		defer e.Release()
		r := rand.New(rand.NewPCG(rand.Uint64(), 1))
		for pb.Next() {
			e.Enter()
			k := r.IntN(len(slots))
			if _, err := c.Fill(&slots[k], pageBytes, func(dst []byte) error { write(dst, uint64(k)); return nil }); err != nil {
				b.Fatal(err)
			}
			e.Exit()
			if u := budget.Used(); u > most.Load() {
				most.Store(u)
			}
		}
	})
	b.ReportMetric(float64(c.Stats().Overcommits)/float64(b.N), "overcommits/op")
	b.ReportMetric(float64(most.Load())/float64(budget.Limit()), "used/limit")
}

func BenchmarkLoad(b *testing.B) {
	c, e, slots := benchCache(b, 1000)
	i := 0
	sum := 0
	for b.Loop() {
		e.Enter()
		sum += int(c.Load(&slots[i*7919%1000]).Data()[0])
		e.Exit()
		i++
	}
}

func BenchmarkPinUnpin(b *testing.B) {
	c, e, slots := benchCache(b, 1)
	e.Enter()
	p := c.Load(&slots[0])
	for b.Loop() {
		p.Pin()
		p.Unpin()
	}
}

func BenchmarkFillEvicting(b *testing.B) {
	budget, d := arena.NewBudget(8<<20), epoch.New()
	c, e := New(budget, d), d.Register()
	defer c.Close()
	slots := make([]Slot, 1000)
	i := 0
	for b.Loop() {
		e.Enter()
		if _, err := c.Fill(&slots[i%1000], pageBytes, func([]byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
		e.Exit()
		i++
	}
}

func benchCache(b *testing.B, n int) (*Cache, *epoch.Slot, []Slot) {
	d := epoch.New()
	c, e := New(arena.NewBudget(0), d), d.Register()
	b.Cleanup(func() { _ = c.Close() })
	slots := make([]Slot, n)
	for i := range slots {
		if _, err := c.Fill(&slots[i], pageBytes, func(dst []byte) error { clear(dst); return nil }); err != nil {
			b.Fatal(err)
		}
	}
	return c, e, slots
}
