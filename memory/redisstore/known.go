package redisstore

import "strconv"

// knows says which pending outcomes are known.
func (e *encoder) knows(p *pendings) {
	e.known = p
	e.text[e.told] = strconv.FormatInt(p.upto(), 10)
}

// knownBy writes the records by which the caller knows what it writes to: of the task when the newest was written and its
// place, of the agent when it was, which ledger's it is and its place, and the key of that ledger. "=" where it is the same.
func (e *encoder) knownBy(s seen, by string) {
	task, agent := s.task.record, s.agent.record
	if task.seq == 0 {
		e.add("", "")
	} else {
		e.padded(task.at)
		e.padded(task.seq)
	}
	switch {
	case agent.seq == 0:
		e.add("", "", "0")
	case agent == task && by == e.keys.ledger:
		e.add("=", "", "0")
	default:
		e.padded(agent.at)
		e.join(string(agent.kind()), strconv.FormatInt(agent.seq, 10))
		e.int(e.key(by))
	}
}
