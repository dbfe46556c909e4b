package workload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/peer"
)

// The writer repeats: crashSingles puts, one batch of crashBatch pairs. Commit seq
// writes its sequence number plus one as the version of its keys.
const (
	crashSingles = 9
	crashBatch   = 10
	crashKeys    = 500
)

// crashModel knows which commits were acknowledged and which may have happened.
type crashModel struct {
	*expectation
	batches bool
	begun   uint64          // the first commit of the writer under way
	next    uint64          // the first commit not acknowledged
	settled map[uint64]bool // commits not to be looked for: under way at a kill, or counted as lost

	floor        []uint64 // by key: the version that must at least be there
	acknowledged int      // commits, of all stores
	lost, torn   int      // commits, batches
	lostBatches  int      // of the lost commits
}

func newCrashModel(p Params, e engine.Info) *crashModel {
	p.N = crashKeys
	return &crashModel{expectation: expect(p), batches: e.Can(engine.CanBatch), settled: map[uint64]bool{}, floor: make([]uint64, crashKeys)}
}

// forget begins with an empty store.
func (m *crashModel) forget() {
	m.next, m.begun = 0, 0
	clear(m.floor)
	clear(m.settled)
}

// keysOf lists the keys that commit seq writes.
func keysOf(seq uint64, batches bool) []uint64 {
	if !batches || seq%(crashSingles+1) != crashSingles {
		return []uint64{seq * 7 % crashKeys}
	}
	ids := make([]uint64, crashBatch)
	for i := range ids {
		ids[i] = (seq*7 + uint64(i)*31) % crashKeys
	}
	return ids
}

// acknowledge notes all commits before last.
func (m *crashModel) acknowledge(last uint64) {
	m.acknowledged += int(last - m.next)
	for ; m.next < last; m.next++ {
		for _, id := range keysOf(m.next, m.batches) {
			m.floor[id] = m.next + 1
		}
	}
}

// check reads every key after a kill and takes what it finds for the state from
// which the next writer goes on. The commit under way at the kill, m.next, may be
// there or not, but not in part.
func (m *crashModel) check(r engine.Reader) error {
	underWay := keysOf(m.next, m.batches)
	found := make([]uint64, crashKeys)
	for id := range uint64(crashKeys) {
		version, err := m.versionOf(r, id)
		if err != nil {
			return err
		}
		found[id] = version
		if version == m.next+1 && slices.Contains(underWay, id) {
			continue
		}
		if version > m.next {
			return wrong("key %d: version %d, and only %d commits were begun", id, version, m.next+1)
		}
	}
	m.countLost(found)
	m.countTorn(found)
	m.floor = found
	m.settled[m.next] = true
	m.next++ // never used again, so that no two commits write the same version
	m.begun = m.next
	return nil
}

// countLost counts, once each, the acknowledged commits of which a key shows
// something earlier.
func (m *crashModel) countLost(found []uint64) {
	for seq := range m.next {
		if m.settled[seq] {
			continue
		}
		ids := keysOf(seq, m.batches)
		for _, id := range ids {
			if found[id] < seq+1 && seq+1 <= m.floor[id] {
				m.lost++
				if len(ids) > 1 {
					m.lostBatches++
				}
				m.settled[seq] = true
				break
			}
		}
	}
}

// countTorn counts batches of this writer of which one key shows the batch and
// another shows something earlier.
func (m *crashModel) countTorn(found []uint64) {
	if !m.batches {
		return
	}
	for seq := m.begun; seq <= m.next; seq++ {
		ids := keysOf(seq, true)
		if len(ids) == 1 {
			continue
		}
		exact, earlier := 0, 0
		for _, id := range ids {
			switch {
			case found[id] == seq+1:
				exact++
			case found[id] < seq+1:
				earlier++
			}
		}
		if exact > 0 && earlier > 0 {
			m.torn++
		}
	}
}

// versionOf finds which version of a key the store has; 0 is none. The version that
// should be there is tried first, then those that can be.
func (m *crashModel) versionOf(r engine.Reader, id uint64) (version uint64, err error) {
	l := newLookup(func(id uint64, got []byte) error {
		is := func(v uint64) bool { return bytes.Equal(got, m.source.Value(id, v, m.size)) }
		if version = m.floor[id]; version > 0 && is(version) {
			return nil
		}
		for version = m.next + 1; version > 0; version-- {
			if slices.Contains(keysOf(version-1, m.batches), id) && is(version) {
				return nil
			}
		}
		return wrong("key %d: %d bytes that were never written", id, len(got))
	})
	l.id = id
	err = r.Get(m.keys.At(int(id)), l.see)
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return version, l.answered()
}

func isWrongAnswer(err error) bool {
	var w *WrongAnswer
	return errors.As(err, &w)
}

// victimOrder is what the writer that will be killed is told.
type victimOrder struct {
	Part part
	Next uint64
}

// runVictim writes until it is killed. Each acknowledgement leaves the process, by
// one write to a pipe, before the next commit begins.
func runVictim(self *peer.Self) error {
	var o victimOrder
	if err := self.Order(&o); err != nil {
		return err
	}
	d, err := engine.Find(o.Part.Engine)
	if err != nil {
		return err
	}
	m := newCrashModel(o.Part.Params, d.Info)
	store, err := d.Open(o.Part.Dir, o.Part.Params.options())
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	for seq := o.Next; ; seq++ {
		if err := m.commit(store, seq); err != nil {
			return fmt.Errorf("commit %d: %w", seq, err)
		}
		if _, err := self.Out.Write(binary.LittleEndian.AppendUint64(nil, seq)); err != nil {
			return err
		}
	}
}

func (m *crashModel) commit(store engine.Store, seq uint64) error {
	ids := keysOf(seq, m.batches)
	if len(ids) == 1 {
		return store.Put(m.keys.At(int(ids[0])), m.source.Value(ids[0], seq+1, m.size))
	}
	_, err := store.(engine.Batcher).PutBatch(func(yield func(key, value []byte) bool) {
		for _, id := range ids {
			if !yield(m.keys.At(int(id)), m.source.Value(id, seq+1, m.size)) {
				return
			}
		}
	})
	return err
}

func readSequence(r io.Reader) (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}
