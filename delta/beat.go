package delta

import (
	"context"
	"time"
)

// beat keeps the lease alive, and notices when the task is cancelled or the lease lost elsewhere.
func (f *flight) beat(done <-chan struct{}) {
	every := time.NewTicker(f.t.engine.cfg.Lease / 3)
	defer every.Stop()
	for {
		if !f.renew() {
			return
		}
		select {
		case <-done:
			return
		case <-every.C:
		}
	}
}

func (f *flight) renew() bool {
	f.mu.Lock()
	ttl := f.t.engine.cfg.Lease.Microseconds()
	x := f.run.Renew(f.view, ttl)
	if f.ctx.Err() != nil {
		x = f.run.Keep(ttl)
	}
	f.mu.Unlock()
	f.t.engine.inheritHalts(f.ctx)
	sent := time.Now()
	reply, err := f.t.engine.apply(f.ctx, x)
	switch {
	case err != nil: // the next beat tries again; clear and settle know how long the lease is surely held
	case reply.OK:
		f.mu.Lock()
		f.until = sent.Add(time.Duration(reply.Until-reply.Now) * time.Microsecond)
		f.mu.Unlock()
	case reply.Failed < 0:
		f.stop(errSuperseded)
		return false
	default:
		return f.taskChanged()
	}
	return true
}

func (f *flight) taskChanged() bool {
	v, err := f.t.peek(context.WithoutCancel(f.ctx))
	if err != nil {
		return true
	}
	f.mu.Lock()
	f.view = v
	f.mu.Unlock()
	if why := v.Stopped(f.intent, f.def.name, false); why != "" {
		f.stop(stoppedBy(why))
	}
	return f.renewOnce()
}

// renewOnce prolongs the lease whatever the task's state, so that a cancelled call can still settle.
func (f *flight) renewOnce() bool {
	f.mu.Lock()
	x := f.run.Keep(f.t.engine.cfg.Lease.Microseconds())
	f.mu.Unlock()
	sent := time.Now()
	reply, err := f.t.engine.apply(f.ctx, x)
	if err == nil && reply.OK {
		f.mu.Lock()
		f.until = sent.Add(time.Duration(reply.Until-reply.Now) * time.Microsecond)
		f.mu.Unlock()
	}
	return err != nil || reply.OK
}

// stop tells the function to stop.
func (f *flight) stop(cause error) { f.course.Cancel(cause) }
