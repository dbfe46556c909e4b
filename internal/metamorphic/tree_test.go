package metamorphic

import (
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"
)

// node is a persistent ordered map of strings: a treap whose priorities are hashes of
// its keys, after Seidel and Aragon, "Randomized Search Trees", 1996. nil is empty. Nodes
// are never changed.
type node struct {
	key, value  string
	prio        uint64
	left, right *node
	size        int
	hash        uint64 // of the pair
	sum         uint64 // of the hashes of all pairs: equal maps have equal sums
}

var hashSeed = maphash.MakeSeed()

func (n *node) len() int {
	if n == nil {
		return 0
	}
	return n.size
}

func (n *node) digest() uint64 {
	if n == nil {
		return 0
	}
	return n.sum
}

func pairHash(key, value string) uint64 {
	return maphash.String(hashSeed, key)*0x9E3779B97F4A7C15 ^ maphash.String(hashSeed, value)
}

// join makes a node of m's pair with other children.
func (n *node) join(left, right *node) *node {
	c := *n
	c.left, c.right = left, right
	c.size = 1 + left.len() + right.len()
	c.sum = n.hash + left.digest() + right.digest()
	return &c
}

// split parts n into the keys below key and the rest.
func (n *node) split(key string) (below, rest *node) {
	if n == nil {
		return nil, nil
	}
	if n.key < key {
		below, rest = n.right.split(key)
		return n.join(n.left, below), rest
	}
	below, rest = n.left.split(key)
	return below, n.join(rest, n.right)
}

// merge joins two maps, every key of a being below those of b.
func merge(a, b *node) *node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.prio > b.prio:
		return a.join(a.left, merge(a.right, b))
	}
	return b.join(merge(a, b.left), b.right)
}

func (n *node) with(key, value string) *node {
	below, rest := n.split(key)
	_, above := rest.split(key + "\x00")
	one := &node{key: key, value: value, prio: maphash.String(hashSeed, key), hash: pairHash(key, value)}
	return merge(below, merge(one.join(nil, nil), above))
}

func (n *node) without(key string) *node {
	if _, ok := n.get(key); !ok {
		return n
	}
	below, rest := n.split(key)
	_, above := rest.split(key + "\x00")
	return merge(below, above)
}

func (n *node) withoutRange(r span) *node {
	below, rest := n.split(r.low)
	if r.open {
		return below
	}
	if r.empty() {
		return n
	}
	_, above := rest.split(r.high)
	return merge(below, above)
}

// within returns the map of the keys in r.
func (n *node) within(r span) *node {
	if r.empty() {
		return nil
	}
	_, rest := n.split(r.low)
	if r.open {
		return rest
	}
	below, _ := rest.split(r.high)
	return below
}

func (n *node) get(key string) (string, bool) {
	for n != nil && n.key != key {
		if key < n.key {
			n = n.left
		} else {
			n = n.right
		}
	}
	if n == nil {
		return "", false
	}
	return n.value, true
}

// ceil returns the first pair at or above key, nil if there is none.
func (n *node) ceil(key string) (found *node) {
	for n != nil {
		if n.key >= key {
			found, n = n, n.left
		} else {
			n = n.right
		}
	}
	return found
}

// lower returns the last pair below key, nil if there is none.
func (n *node) lower(key string) (found *node) {
	for n != nil {
		if n.key < key {
			found, n = n, n.right
		} else {
			n = n.left
		}
	}
	return found
}

func (n *node) last() *node {
	for n != nil && n.right != nil {
		n = n.right
	}
	return n
}

// span is a half-open range of keys: from low up to high, or to the end if open.
type span struct {
	low, high string
	open      bool
}

func (r span) empty() bool { return !r.open && r.high <= r.low }

// last returns the last pair of n in r.
func (r span) last(n *node) *node {
	if r.open {
		n = n.last()
	} else {
		n = n.lower(r.high)
	}
	if n == nil || n.key < r.low {
		return nil
	}
	return n
}

func (r span) first(n *node) *node { return r.holding(n.ceil(r.low)) }

// holding returns n if its key is in r.
func (r span) holding(n *node) *node {
	if n == nil || n.key < r.low || !r.open && n.key >= r.high {
		return nil
	}
	return n
}

// TestTree compares the model with a map.
func TestTree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	key := func() string { return string([]byte{byte(r.IntN(20)), byte(r.IntN(20))}[:1+r.IntN(2)]) }
	var tree *node
	want := map[string]string{}
	for range 5000 {
		k := key()
		switch p := r.IntN(10); {
		case p < 6:
			v := key()
			tree, want[k] = tree.with(k, v), v
		case p < 9:
			tree = tree.without(k)
			delete(want, k)
		default:
			s := span{low: k, high: k + "\x04"}
			tree = tree.withoutRange(s)
			for have := range want {
				if have >= s.low && have < s.high {
					delete(want, have)
				}
			}
		}
		keys := make([]string, 0, len(want))
		rebuilt := (*node)(nil)
		for have, v := range want {
			keys, rebuilt = append(keys, have), rebuilt.with(have, v)
		}
		slices.Sort(keys)
		if tree.len() != len(want) || tree.digest() != rebuilt.digest() {
			t.Fatalf("%d pairs, want %d", tree.len(), len(want))
		}
		probe := key()
		i, _ := slices.BinarySearch(keys, probe)
		if n := tree.ceil(probe); (n == nil) != (i == len(keys)) || n != nil && n.key != keys[i] {
			t.Fatalf("ceil(%q)", probe)
		}
		if n := tree.lower(probe); (n == nil) != (i == 0) || n != nil && n.key != keys[i-1] {
			t.Fatalf("lower(%q)", probe)
		}
	}
}
