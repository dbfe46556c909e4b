//go:build cgo && (native || native_tokyocabinet)

package tokyo

/*
#include <stdlib.h>
#include <stdbool.h>
#include <tcutil.h>
#include <tchdb.h>

typedef struct { int code; const void *k; int ks; const void *v; int vs; } hash_rec;

static int hash_code(TCHDB *db, bool ok) { return ok ? TCESUCCESS : tchdbecode(db); }

static int hash_open(TCHDB *db, const char *path, int mode, int64_t buckets) {
  return hash_code(db, tchdbsetmutex(db) && tchdbtune(db, buckets, -1, -1, 0) && tchdbopen(db, path, mode));
}

static int hash_close(TCHDB *db) { return hash_code(db, tchdbclose(db)); }
static int hash_sync(TCHDB *db) { return hash_code(db, tchdbsync(db)); }
static int hash_begin(TCHDB *db) { return hash_code(db, tchdbtranbegin(db)); }
static int hash_commit(TCHDB *db) { return hash_code(db, tchdbtrancommit(db)); }

static int hash_put(TCHDB *db, const void *k, int ks, const void *v, int vs) {
  return hash_code(db, tchdbput(db, k, ks, v, vs));
}

static int hash_out(TCHDB *db, const void *k, int ks) { return hash_code(db, tchdbout(db, k, ks)); }

static hash_rec hash_sized(TCHDB *db, int size) {
  hash_rec r = {hash_code(db, size >= 0), 0, 0, 0, size};
  return r;
}

static hash_rec hash_get(TCHDB *db, const void *k, int ks, void *buf, int max) {
  return hash_sized(db, tchdbget3(db, k, ks, buf, max));
}

static hash_rec hash_size(TCHDB *db, const void *k, int ks) { return hash_sized(db, tchdbvsiz(db, k, ks)); }

static int hash_first(TCHDB *db) { return hash_code(db, tchdbiterinit(db)); }

static hash_rec hash_next(TCHDB *db, TCXSTR *k, TCXSTR *v) {
  hash_rec r = {TCESUCCESS, 0, 0, 0, 0};
  if (!tchdbiternext3(db, k, v)) {
    r.code = tchdbecode(db);
    return r;
  }
  r.k = tcxstrptr(k); r.ks = tcxstrsize(k);
  r.v = tcxstrptr(v); r.vs = tcxstrsize(v);
  return r;
}

static hash_rec hash_next_key(TCHDB *db) {
  hash_rec r = {TCESUCCESS, 0, 0, 0, 0};
  r.k = tchdbiternext(db, &r.ks);
  if (!r.k) r.code = tchdbecode(db);
  return r;
}
*/
import "C"

import "unsafe"

// Hash is an open hash database.
type Hash struct{ db *C.TCHDB }

// OpenHash opens the file, or creates it with so many buckets. It does not wait for a lock.
func OpenHash(path string, buckets int64) (*Hash, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	h := &Hash{C.tchdbnew()}
	if err := check(C.hash_open(h.db, name, C.HDBOWRITER|C.HDBOCREAT|C.HDBOLCKNB, C.int64_t(buckets))); err != nil {
		C.tchdbdel(h.db)
		return nil, err
	}
	return h, nil
}

// Buckets is how many the file has.
func (h *Hash) Buckets() int64 { return int64(C.tchdbbnum(h.db)) }

// Close writes what is not written and closes the file.
func (h *Hash) Close() error {
	err := check(C.hash_close(h.db))
	C.tchdbdel(h.db)
	return err
}

// Put sets key.
func (h *Hash) Put(key, value []byte) error {
	return check(C.hash_put(h.db, start(key), C.int(len(key)), start(value), C.int(len(value))))
}

// Delete removes key, or returns ErrNoRecord.
func (h *Hash) Delete(key []byte) error {
	return check(C.hash_out(h.db, start(key), C.int(len(key))))
}

// Get reads the value of key into buf, which it replaces if it is too small.
func (h *Hash) Get(key, buf []byte) ([]byte, error) {
	buf = buf[:cap(buf)]
	for {
		if len(buf) > 0 {
			r := C.hash_get(h.db, start(key), C.int(len(key)), start(buf), C.int(len(buf)))
			if err := check(r.code); err != nil {
				return buf, err
			}
			if int(r.vs) < len(buf) { // less than fits: not cut
				return buf[:r.vs], nil
			}
		}
		r := C.hash_size(h.db, start(key), C.int(len(key)))
		if err := check(r.code); err != nil {
			return buf, err
		}
		buf = make([]byte, int(r.vs)+1)
	}
}

// Sync writes everything to the device.
func (h *Hash) Sync() error { return check(C.hash_sync(h.db)) }

// Update runs fn in a transaction and takes it back if fn fails.
func (h *Hash) Update(fn func() error) error {
	if err := check(C.hash_begin(h.db)); err != nil {
		return err
	}
	if err := fn(); err != nil {
		C.tchdbtranabort(h.db)
		return err
	}
	return check(C.hash_commit(h.db))
}

// Pairs calls see with every pair, which is valid only during the call.
func (h *Hash) Pairs(see func(key, value []byte) error) error {
	if err := check(C.hash_first(h.db)); err != nil {
		return err
	}
	k, v := C.tcxstrnew(), C.tcxstrnew()
	defer C.tcxstrdel(k)
	defer C.tcxstrdel(v)
	for {
		r := C.hash_next(h.db, k, v)
		if err := check(r.code); err != nil {
			return atEnd(err)
		}
		if err := see(lend(r.k, r.ks), lend(r.v, r.vs)); err != nil {
			return err
		}
	}
}

// Keys calls see with every key, which is valid only during the call.
func (h *Hash) Keys(see func(key []byte) error) error {
	if err := check(C.hash_first(h.db)); err != nil {
		return err
	}
	for {
		r := C.hash_next_key(h.db)
		if err := check(r.code); err != nil {
			return atEnd(err)
		}
		err := see(lend(r.k, r.ks))
		C.free(unsafe.Pointer(r.k))
		if err != nil {
			return err
		}
	}
}

// atEnd: a walk ends with the error that there is no record.
func atEnd(err error) error {
	if err == ErrNoRecord {
		return nil
	}
	return err
}
