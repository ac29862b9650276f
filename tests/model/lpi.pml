/* SPDX-License-Identifier: MIT */
/*
 * Injecting a cached LPI, against unmapping it, mapping it again, and the vCPU
 * that takes it off its ap_list. docs/lpi.md says what stands for what.
 *
 * As the series has it: nothing is defined, or LIST for 6.1, where an LPI is
 * taken off a list and not out of an XArray. Each of these is wrong, and a
 * checker has to say so:
 * PLAIN_GET	take the ap_list's reference whether there is one left or not
 * NO_RCU	free an interrupt at once
 * ERASE_ANY	erase by INTID, after the last reference is gone (stock 6.12)
 * LIST_LOCK	hold the list lock over the injection (the proposed fix)
 */
#define NONE	  255
#define NR_IRQS	  3 /* struct vgic_irq, one at a time mapped to the event */

byte ref[NR_IRQS];
bool freed[NR_IRQS];
bool queued[NR_IRQS]; /* irq->vcpu is set, and it is in the ap_list */
byte grace[NR_IRQS]; /* the readers that its kfree_rcu() waits for */
bool released[NR_IRQS];

byte ite = NONE; /* what the event translates to, under its_lock */
byte cache = NONE; /* its->translation_cache */
byte lpi = NONE; /* dist->lpi_xa, or the list */
byte nr_irqs = 0;
byte unmapped = 0; /* how often */
bool unmapping = false; /* that is going on */

bool its_lock, ap_list_lock, list_lock, irq_lock[NR_IRQS];
byte readers = 0; /* in an RCU read-side section, a bit each */

#define LOCK(l)	    atomic { !l; l = true }
#define UNLOCK(l)   l = false
#define LIVE(i)	    assert(!freed[i])
#define TRY_GET(i, ok)                      \
	atomic {                            \
		LIVE(i);                    \
		ok = (ref[i] > 0);          \
		ref[i] = ref[i] + (ok -> 1 : 0); \
	}

#define MAPPER 2 /* the its process's bit */

inline rcu_read_lock(me)
{
	readers = readers | (1 << me)
}

inline rcu_read_unlock(me)
{
	atomic {
		readers = readers & ~(1 << me);
		grace[0] = grace[0] & ~(1 << me);
		grace[1] = grace[1] & ~(1 << me);
		grace[2] = grace[2] & ~(1 << me)
	}
}

inline release(i)
{
	atomic {
#ifdef NO_RCU
		freed[i] = true;
#else
		grace[i] = readers;
		released[i] = true;
#endif
		assert(!queued[i])
	}
}

/* vgic_put_irq() */
inline put(i, last)
{
#if defined(LIST) || defined(ERASE_ANY)
	atomic { LIVE(i); assert(ref[i] > 0); ref[i]--; last = (ref[i] == 0) };
	if
	:: last ->
		LOCK(list_lock);
#ifdef ERASE_ANY
		lpi = NONE;
#else
		if
		:: lpi == i -> lpi = NONE
		:: else
		fi;
#endif
		UNLOCK(list_lock);
		release(i)
	:: else
	fi
#else
	/* refcount_dec_and_lock(): not the last one goes without the lock */
	atomic {
		LIVE(i);
		assert(ref[i] > 0);
		last = (ref[i] == 1);
		ref[i] = ref[i] - (last -> 0 : 1)
	};
	if
	:: last ->
		LOCK(list_lock);
		atomic { ref[i]--; last = (ref[i] == 0) };
		if
		:: last -> lpi = NONE; release(i)
		:: else
		fi;
		UNLOCK(list_lock)
	:: else
	fi
#endif
}

/* vgic_queue_irq_unlock(), entered without the irq_lock */
inline queue(i, ok)
{
	LIVE(i);
	LOCK(irq_lock[i]);
	ok = queued[i];
	LIVE(i);
	UNLOCK(irq_lock[i]);
	if
	:: ok
	:: else ->
		LOCK(ap_list_lock);
		LIVE(i);
		LOCK(irq_lock[i]);
		if
		:: queued[i] -> ok = true
		:: else ->
#ifdef PLAIN_GET
			atomic { LIVE(i); ref[i]++; ok = true };
#else
			TRY_GET(i, ok);
#endif
			queued[i] = ok
		fi;
		LIVE(i);
		UNLOCK(irq_lock[i]);
		UNLOCK(ap_list_lock)
	fi
}

proctype inject(byte me)
{
	byte irq, before;
	bool ok, last, gone;

	atomic { before = unmapped; gone = unmapping };
#ifdef LIST_LOCK
	LOCK(list_lock);
#endif
	rcu_read_lock(me);
	irq = cache;
	if
	:: irq != NONE ->
		queue(irq, ok);
		/* Not lost, unless the event was unmapped in the meantime */
		assert(ok || gone || unmapped != before)
	:: else
	fi;
	rcu_read_unlock(me);
#ifdef LIST_LOCK
	UNLOCK(list_lock);
#endif
	if
	:: irq == NONE ->
		/* The slow way, which caches the translation */
		LOCK(its_lock);
		irq = ite;
		if
		:: irq != NONE ->
			atomic { LIVE(irq); assert(ref[irq] > 0); ref[irq]++ };
			atomic { before = cache; cache = irq };
			if
			:: before != NONE -> put(before, last)
			:: else
			fi;
			queue(irq, ok);
			assert(ok)
		:: else
		fi;
		UNLOCK(its_lock)
	:: else
	fi
}

/* vgic_add_lpi() */
inline map(i, ok)
{
	ok = false;
#ifdef LIST
	LOCK(list_lock);
#else
	rcu_read_lock(MAPPER);
#endif
	i = lpi;
	if
	:: i != NONE -> TRY_GET(i, ok)
	:: else
	fi;
#ifdef LIST
	UNLOCK(list_lock);
#else
	rcu_read_unlock(MAPPER);
#endif
	if
	:: ok
	:: else ->
		LOCK(list_lock);
		i = lpi;
		if
		:: i != NONE -> TRY_GET(i, ok)
		:: else
		fi;
		if
		:: ok
		:: else ->
			i = nr_irqs;
			nr_irqs++;
			ref[i] = 1;
			lpi = i
		fi;
		UNLOCK(list_lock)
	fi;
	ite = i
}

/* DISCARD and MAPTI of the same event and INTID */
proctype its()
{
	byte irq, cached;
	bool ok, last;

	LOCK(its_lock);
	map(irq, ok);
	UNLOCK(its_lock);
	do
	:: nr_irqs < NR_IRQS && unmapped < 2 ->
		LOCK(its_lock);
		atomic { unmapped++; unmapping = true };
		atomic { cached = cache; cache = NONE };
		if
		:: cached != NONE -> put(cached, last)
		:: else
		fi;
		irq = ite;
		ite = NONE;
		put(irq, last);
		unmapping = false;
		UNLOCK(its_lock);

		LOCK(its_lock);
		map(irq, ok);
		UNLOCK(its_lock)
	:: else -> break
	od
}

/* vgic_prune_ap_list(): puts with the ap_list_lock held */
proctype vcpu()
{
	byte irq;
	bool last;

end:	do
	:: atomic { queued[0] -> irq = 0 }; goto prune
	:: atomic { queued[1] -> irq = 1 }; goto prune
	:: atomic { queued[2] -> irq = 2 }; goto prune
	od;
prune:
	LOCK(ap_list_lock);
	if
	:: queued[irq] ->
		LIVE(irq);
		LOCK(irq_lock[irq]);
		queued[irq] = false;
		UNLOCK(irq_lock[irq]);
		put(irq, last)
	:: else
	fi;
	UNLOCK(ap_list_lock);
	goto end
}

/* The end of a grace period */
proctype rcu()
{
end:	do
	:: atomic { released[0] && !freed[0] && !grace[0] -> freed[0] = true }
	:: atomic { released[1] && !freed[1] && !grace[1] -> freed[1] = true }
	:: atomic { released[2] && !freed[2] && !grace[2] -> freed[2] = true }
	od
}

init {
	atomic {
		run its();
		run vcpu();
		run rcu();
		run inject(0);
		run inject(1)
	};
	/* All at rest: the INTID is found, if it is mapped. */
	_nr_pr == 4 && timeout; /* the injecting ones have ended */
	assert(lpi == ite)
}
