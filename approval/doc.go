// Package approval is a person's consent to one exact call: the digest that says which call, the states a request passes
// through, who may decide, and when earned trust stands in for a person. It holds no requests and asks nobody.
//
// # States
//
//	         ask
//	          │
//	          ▼      approve                consume
//	      pending ──────────▶ approved ◀───────────────▶ consumed
//	       │ │ │               │    │        return
//	reject │ │ │ revoke        │    │
//	       │ │ └───────▶ revoked ◀──┘ (revoke)
//	       │ └─ expire ──▶ expired ◀┘ (expire)
//	       ▼
//	    rejected
//
// Waiting too long is expiry: never a rejection and never consent. A consent is used once, by one intent. That intent
// alone gives it back, and only where it never started. Rejected, expired and revoked absorb: nothing leaves them.
// Where an action asks for several people ([Quorum]), approve is the last consent that it takes; those before it are
// [Votes], and the request stays pending. Another try is another request; a rejected call is not asked about again in its task ([State.AskAgain]).
package approval
