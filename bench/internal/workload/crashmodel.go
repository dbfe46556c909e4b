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

// The writer repeats: crashSingles puts, of which one is a delete instead, and one batch of
// crashBatch pairs. Commit seq writes its sequence number plus one as the version of its keys;
// that a key is deleted is a version too.
const (
	crashSingles = 9
	crashDelete  = 4 // of the crashSingles
	crashBatch   = 10
	crashKeys    = 500
)

// Engines have other ways with long values than with short ones. Few are long, for the time.
const (
	crashMiddling = 4 << 10
	crashLong     = 64 << 10
)

// isDelete reports whether commit seq deletes its key.
func isDelete(seq uint64) bool { return seq%(crashSingles+1) == crashDelete }

// sizeOf returns how long the values of commit seq are; the others have that of the workload.
func (m *crashModel) sizeOf(seq uint64) int {
	switch {
	case seq%100 == 50:
		return crashLong
	case seq%10 == 2 || seq%50 == 49: // a put, a batch
		return crashMiddling
	}
	return m.size
}

// written is the value of a key that commit seq puts.
func (m *crashModel) written(id, seq uint64) []byte {
	return m.source.Value(id, seq+1, m.sizeOf(seq))
}

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
	if isDelete(seq) { // what one of the last puts has put
		seq -= 2 + 2*(seq/10%4)
	}
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

// versionOf finds which version of a key the store has; 0 is that it was never there. The
// version that should be there is tried first, then those that can be.
func (m *crashModel) versionOf(r engine.Reader, id uint64) (version uint64, err error) {
	l := newLookup(func(id uint64, got []byte) error {
		is := func(v uint64) bool { return !isDelete(v-1) && bytes.Equal(got, m.written(id, v-1)) }
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
		return m.goneSince(id), nil
	case err != nil:
		return 0, err
	}
	return version, l.answered()
}

// goneSince returns the version of a key that is not there: that which should be there if it
// is a delete, or the delete under way at the kill, else the delete before, which one cannot
// tell from others before it; 0 if there was none.
func (m *crashModel) goneSince(id uint64) uint64 {
	floor := m.floor[id]
	if floor > 0 && !isDelete(floor-1) && isDelete(m.next) && slices.Contains(keysOf(m.next, m.batches), id) {
		return m.next + 1
	}
	for ; floor > 0; floor-- {
		if isDelete(floor-1) && slices.Contains(keysOf(floor-1, m.batches), id) {
			return floor
		}
	}
	return 0
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
	switch {
	case isDelete(seq):
		return deleteIfThere(store, m.keys.At(int(ids[0])))
	case len(ids) == 1:
		return store.Put(m.keys.At(int(ids[0])), m.written(ids[0], seq))
	}
	_, err := store.(engine.Batcher).PutBatch(func(yield func(key, value []byte) bool) {
		for _, id := range ids {
			if !yield(m.keys.At(int(id)), m.written(id, seq)) {
				return
			}
		}
	})
	return err
}

// deleteIfThere: what a kill has taken cannot be deleted, which is an error to some engines.
func deleteIfThere(store engine.Store, key []byte) error {
	err := store.Get(key, func([]byte) error { return nil })
	if err == nil {
		err = store.Delete(key)
	}
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	return err
}

func readSequence(r io.Reader) (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}
