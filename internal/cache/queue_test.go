package cache

import "testing"

func TestQueueKeepsOrderAndSums(t *testing.T) {
	var q queue
	q.init()
	if q.oldest() != nil {
		t.Fatal("an empty queue has an oldest page")
	}
	a, b, c := &Page{cost: 1}, &Page{cost: 2}, &Page{cost: 4}
	for _, p := range []*Page{a, b, c} {
		q.push(p)
	}
	if q.bytes != 7 || q.pages != 3 || q.oldest() != a {
		t.Fatalf("%d bytes, %d pages, oldest %p", q.bytes, q.pages, q.oldest())
	}
	b.remove()
	a.remove()
	if q.bytes != 4 || q.pages != 1 || q.oldest() != c || a.queue != nil {
		t.Fatalf("%d bytes, %d pages, oldest %p", q.bytes, q.pages, q.oldest())
	}
	q.push(a)
	c.remove()
	if q.oldest() != a || a.queue != &q {
		t.Fatal("a page pushed again is lost")
	}
}
