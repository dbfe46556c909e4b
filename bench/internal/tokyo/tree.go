//go:build cgo && (native || native_tokyocabinet)

package tokyo

/*
#include <stdlib.h>
#include <stdbool.h>
#include <tcutil.h>
#include <tcbdb.h>

typedef struct { int code; const void *k; int ks; const void *v; int vs; } tree_rec;

static int tree_code(TCBDB *db, bool ok) { return ok ? TCESUCCESS : tcbdbecode(db); }

static int tree_open(TCBDB *db, const char *path, int mode) {
  return tree_code(db, tcbdbsetmutex(db) && tcbdbopen(db, path, mode));
}

static int tree_close(TCBDB *db) { return tree_code(db, tcbdbclose(db)); }
static int tree_sync(TCBDB *db) { return tree_code(db, tcbdbsync(db)); }
static int tree_begin(TCBDB *db) { return tree_code(db, tcbdbtranbegin(db)); }
static int tree_commit(TCBDB *db) { return tree_code(db, tcbdbtrancommit(db)); }

static int tree_put(TCBDB *db, const void *k, int ks, const void *v, int vs) {
  return tree_code(db, tcbdbput(db, k, ks, v, vs));
}

static int tree_out(TCBDB *db, const void *k, int ks) { return tree_code(db, tcbdbout(db, k, ks)); }

static tree_rec tree_get(TCBDB *db, const void *k, int ks) {
  tree_rec r = {TCESUCCESS, 0, 0, 0, 0};
  r.v = tcbdbget(db, k, ks, &r.vs);
  if (!r.v) r.code = tcbdbecode(db);
  return r;
}

static int tree_seek(TCBDB *db, BDBCUR *cur, const void *k, int ks) {
  return tree_code(db, ks > 0 ? tcbdbcurjump(cur, k, ks) : tcbdbcurfirst(cur));
}

static tree_rec tree_rec_at(TCBDB *db, BDBCUR *cur, bool next, TCXSTR *k, TCXSTR *v) {
  tree_rec r = {TCESUCCESS, 0, 0, 0, 0};
  if ((next && !tcbdbcurnext(cur)) || !tcbdbcurrec(cur, k, v)) {
    r.code = tcbdbecode(db);
    return r;
  }
  r.k = tcxstrptr(k); r.ks = tcxstrsize(k);
  r.v = tcxstrptr(v); r.vs = tcxstrsize(v);
  return r;
}

static tree_rec tree_key_at(TCBDB *db, BDBCUR *cur, bool next) {
  tree_rec r = {TCESUCCESS, 0, 0, 0, 0};
  if ((next && !tcbdbcurnext(cur)) || !(r.k = tcbdbcurkey(cur, &r.ks))) r.code = tcbdbecode(db);
  return r;
}
*/
import "C"

import "unsafe"

// Tree is an open B+tree database.
type Tree struct{ db *C.TCBDB }

// OpenTree opens or creates the file. It does not wait for a lock.
func OpenTree(path string) (*Tree, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	t := &Tree{C.tcbdbnew()}
	if err := check(C.tree_open(t.db, name, C.BDBOWRITER|C.BDBOCREAT|C.BDBOLCKNB)); err != nil {
		C.tcbdbdel(t.db)
		return nil, err
	}
	return t, nil
}

// Close writes what is not written and closes the file.
func (t *Tree) Close() error {
	err := check(C.tree_close(t.db))
	C.tcbdbdel(t.db)
	return err
}

// Put sets key.
func (t *Tree) Put(key, value []byte) error {
	return check(C.tree_put(t.db, start(key), C.int(len(key)), start(value), C.int(len(value))))
}

// Delete removes key, or returns ErrNoRecord.
func (t *Tree) Delete(key []byte) error {
	return check(C.tree_out(t.db, start(key), C.int(len(key))))
}

// Get calls see with the value of key, which is valid only during the call.
func (t *Tree) Get(key []byte, see func(value []byte) error) error {
	r := C.tree_get(t.db, start(key), C.int(len(key)))
	if err := check(r.code); err != nil {
		return err
	}
	err := see(lend(r.v, r.vs))
	C.free(unsafe.Pointer(r.v))
	return err
}

// Sync writes everything to the device.
func (t *Tree) Sync() error { return check(C.tree_sync(t.db)) }

// Update runs fn in a transaction and takes it back if fn fails.
func (t *Tree) Update(fn func() error) error {
	if err := check(C.tree_begin(t.db)); err != nil {
		return err
	}
	if err := fn(); err != nil {
		C.tcbdbtranabort(t.db)
		return err
	}
	return check(C.tree_commit(t.db))
}

// Scan calls see with the first n pairs whose key is not below from, all of them
// if n is negative. Key and value are valid only during the call.
func (t *Tree) Scan(from []byte, n int, see func(key, value []byte) error) error {
	k, v := C.tcxstrnew(), C.tcxstrnew()
	defer C.tcxstrdel(k)
	defer C.tcxstrdel(v)
	return t.walk(from, n, func(cur *C.BDBCUR, next bool) error {
		r := C.tree_rec_at(t.db, cur, C.bool(next), k, v)
		if err := check(r.code); err != nil {
			return err
		}
		return see(lend(r.k, r.ks), lend(r.v, r.vs))
	})
}

// Keys calls see with every key, which is valid only during the call.
func (t *Tree) Keys(see func(key []byte) error) error {
	return t.walk(nil, -1, func(cur *C.BDBCUR, next bool) error {
		r := C.tree_key_at(t.db, cur, C.bool(next))
		if err := check(r.code); err != nil {
			return err
		}
		err := see(lend(r.k, r.ks))
		C.free(unsafe.Pointer(r.k))
		return err
	})
}

func (t *Tree) walk(from []byte, n int, step func(cur *C.BDBCUR, next bool) error) error {
	if n == 0 {
		return nil
	}
	cur := C.tcbdbcurnew(t.db)
	defer C.tcbdbcurdel(cur)
	err := check(C.tree_seek(t.db, cur, start(from), C.int(len(from))))
	for i := 0; err == nil && i != n; i++ {
		err = step(cur, i > 0)
	}
	return atEnd(err)
}
