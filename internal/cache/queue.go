package cache

// queue is a list of resident pages, newest first, with the sum of their costs.
// Cache.mu guards it.
type queue struct {
	root  Page // sentinel: root.next is the newest page, root.prev the oldest
	bytes int64
	pages int
}

func (q *queue) init() { q.root.next, q.root.prev = &q.root, &q.root }

// push adds p as the newest.
func (q *queue) push(p *Page) {
	p.queue = q
	p.prev, p.next = &q.root, q.root.next
	p.prev.next, p.next.prev = p, p
	q.bytes += p.cost
	q.pages++
}

// remove takes p out of the queue it is in.
func (p *Page) remove() {
	p.prev.next, p.next.prev = p.next, p.prev
	p.prev, p.next = nil, nil
	p.queue.bytes -= p.cost
	p.queue.pages--
	p.queue = nil
}

// oldest returns the page that has been in the queue for longest, or nil.
func (q *queue) oldest() *Page {
	if q.root.prev == &q.root {
		return nil
	}
	return q.root.prev
}
