//go:build cgo && (native || native_lmdb)

package engine

import (
	"sync"

	"github.com/PowerDNS/lmdb-go/lmdb"
)

// lmdbStore keeps read transactions to renew, which its documentation gives as the
// cheap way to read: a new one takes a slot of the reader table each time.
type lmdbStore struct {
	env  *lmdb.Env
	root lmdb.DBI

	idle sync.Pool // hints at free ones of txns; the first place to look
	mu   sync.Mutex
	txns []*lmdbTxn // all there are

	// LMDB's map may change its size only while this process has no transaction:
	// whoever changes it takes writing, mu and every one of txns, in this order.
	writing sync.RWMutex
	size    int64 // of the map
}

// lmdbTxn is a read transaction, locked while it is in use. Each fills cache lines
// of its own, so that readers do not meet on one word of memory.
type lmdbTxn struct {
	sync.Mutex
	txn *lmdb.Txn
	_   [112]byte
}

func newLMDBStore(env *lmdb.Env, size int64) *lmdbStore { return &lmdbStore{env: env, size: size} }

func (s *lmdbStore) openRoot(tx *lmdb.Txn) (err error) {
	s.root, err = tx.OpenRoot(0)
	return err
}

// begin returns a read transaction of the newest commit; end takes it back.
func (s *lmdbStore) begin() (*lmdbTxn, error) {
	for {
		tx, err := s.claim()
		if err == nil {
			if err = tx.txn.Renew(); err == nil {
				return tx, nil
			}
			tx.Unlock()
		}
		if !lmdb.IsMapResized(err) {
			return nil, err
		}
		if err := s.resize(0); err != nil { // the writer's process has grown it
			return nil, err
		}
	}
}

func (s *lmdbStore) end(tx *lmdbTxn) {
	tx.txn.Reset()
	tx.Unlock()
	s.idle.Put(tx)
}

// claim locks a transaction that is not in use. The pool may forget some, which
// are found in the list.
func (s *lmdbStore) claim() (*lmdbTxn, error) {
	for {
		tx, _ := s.idle.Get().(*lmdbTxn)
		if tx == nil {
			break
		}
		if tx.TryLock() {
			return tx, nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tx := range s.txns {
		if tx.TryLock() {
			return tx, nil
		}
	}
	return s.newTxn()
}

func (s *lmdbStore) newTxn() (*lmdbTxn, error) {
	txn, err := s.env.BeginTxn(nil, lmdb.Readonly)
	if err != nil {
		return nil, err
	}
	txn.RawRead = true // lend values
	txn.Reset()
	tx := &lmdbTxn{txn: txn}
	tx.Lock()
	s.txns = append(s.txns, tx)
	return tx, nil
}

// update runs fn in a write transaction, and again in a greater map if it was full.
func (s *lmdbStore) update(fn lmdb.TxnOp) error {
	for {
		s.writing.RLock()
		err, size := s.env.Update(fn), s.size
		s.writing.RUnlock()
		if !lmdb.IsMapFull(err) {
			return err
		}
		if err := s.resize(2 * size); err != nil {
			return err
		}
	}
}

// resize grows the map; 0 takes over the size another process gave it. The caller
// must have no transaction.
func (s *lmdbStore) resize(size int64) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if size != 0 && size <= s.size {
		return nil // another goroutine was faster
	}
	for _, tx := range s.txns { // waits for those in use
		tx.Lock()
		defer tx.Unlock()
	}
	if err := s.env.SetMapSize(size); err != nil {
		return err
	}
	info, err := s.env.Info()
	if err != nil {
		return err
	}
	s.size = info.MapSize
	return nil
}

func (s *lmdbStore) Close() error {
	for _, tx := range s.txns {
		tx.Lock()
		tx.txn.Abort()
	}
	return s.env.Close()
}
