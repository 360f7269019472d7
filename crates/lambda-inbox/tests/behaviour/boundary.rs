//! Handlers that break the transaction: found out and reported, never a success without an effect and
//! never a claim without one.

use crate::support::{
    Act, After, MINUTE, World, invoke, meeting_after, one, store_effect, swallow,
};
use lambda_inbox::Outcome;
use lambda_inbox::sqlx::{self, Connection};
use std::time::Duration;

struct Case {
    name: &'static str,
    act: Act,
    /// What the handler has committed behind the inbox's back.
    left_behind: i64,
    reason: &'static str,
}

const CASES: &[Case] = &[
    Case {
        name: "swallows an SQL error",
        act: |c| Box::pin(swallow(c, "SELECT 1 FROM nowhere")),
        left_behind: 0,
        reason: "ignored an SQL error",
    },
    Case {
        name: "rolls back",
        act: |c| Box::pin(swallow(c, "ROLLBACK")),
        left_behind: 0,
        reason: "ended the inbox's transaction",
    },
    Case {
        name: "commits",
        act: |c| Box::pin(swallow(c, "COMMIT")),
        left_behind: 1,
        reason: "ended the inbox's transaction",
    },
    Case {
        name: "commits and begins",
        act: |c| Box::pin(swallow(c, "COMMIT; BEGIN")),
        left_behind: 1,
        reason: "ended the inbox's transaction",
    },
    Case {
        name: "commits, begins and swallows an SQL error",
        act: |c| {
            Box::pin(async move {
                swallow(c, "COMMIT").await?;
                swallow(c, "BEGIN").await?;
                swallow(c, "SELECT 1 FROM nowhere").await
            })
        },
        left_behind: 1,
        reason: "ignored an SQL error",
    },
    Case {
        name: "forgets a nested transaction",
        act: |c| {
            Box::pin(async move {
                std::mem::forget(c.begin().await?);
                Ok(())
            })
        },
        left_behind: 0,
        reason: "left a nested transaction open",
    },
    Case {
        name: "drops a nested transaction without committing it",
        act: |c| {
            Box::pin(async move {
                let mut nested = c.begin().await?;
                sqlx::query("DELETE FROM effect")
                    .execute(&mut *nested)
                    .await?;
                Ok(())
            })
        },
        left_behind: 0,
        reason: "left a nested transaction open",
    },
    Case {
        name: "opens a nested transaction after a swallowed error",
        act: |c| {
            Box::pin(async move {
                swallow(c, "SELECT 1 FROM nowhere").await?;
                if let Ok(nested) = c.begin().await {
                    let _ = nested.commit().await;
                }
                Ok(())
            })
        },
        left_behind: 0,
        reason: "the handler",
    },
    Case {
        name: "breaks a deferred constraint",
        act: |c| {
            Box::pin(async move {
                let twice = "INSERT INTO effect VALUES ('a', 'same'), ('b', 'same')";
                sqlx::query(twice).execute(c).await?;
                Ok(())
            })
        },
        left_behind: 0,
        reason: "SQLSTATE 23505",
    },
    Case {
        name: "commits and fails",
        act: |c| {
            Box::pin(async move {
                swallow(c, "COMMIT").await?;
                Err("no".into())
            })
        },
        left_behind: 1,
        reason: "ended the inbox's transaction",
    },
    Case {
        name: "commits and panics",
        act: |c| {
            Box::pin(async move {
                swallow(c, "COMMIT").await?;
                panic!("on purpose")
            })
        },
        left_behind: 1,
        reason: "ended the inbox's transaction",
    },
    Case {
        name: "commits and hangs",
        act: |c| {
            Box::pin(async move {
                swallow(c, "COMMIT").await?;
                std::future::pending().await
            })
        },
        left_behind: 1,
        reason: "ended the inbox's transaction",
    },
];

#[tokio::test]
async fn a_handler_that_breaks_the_transaction_is_reported_and_leaves_no_claim() {
    for case in CASES {
        let world = World::new().await;
        let service = world.inbox().build().unwrap().text_handler(After(case.act));

        let answer = world
            .deliver(&service, Duration::from_secs(3), one("m-1"))
            .await;

        let report = world.reports().remove(0);
        assert_eq!(
            answer,
            Ok(vec!["m-1".to_owned()]),
            "{}: {report:?}",
            case.name
        );
        assert_eq!(report.outcome, Outcome::Failed, "{}", case.name);
        let reason = report.reason.unwrap();
        assert!(reason.contains(case.reason), "{}: {reason}", case.name);
        assert_eq!(world.keys().await, 0, "{}", case.name);
        assert_eq!(world.effects().await, case.left_behind, "{}", case.name);
    }
}

#[tokio::test]
async fn the_message_runs_again_once_the_handler_is_mended() {
    for case in CASES {
        let world = World::new().await;
        let broken = world.inbox().build().unwrap().text_handler(After(case.act));
        let _ = world
            .deliver(&broken, Duration::from_secs(3), one("m-1"))
            .await;
        sqlx::query("DELETE FROM effect")
            .execute(&mut world.admin().await)
            .await
            .unwrap();
        world.reports();

        let mended = world.inbox().build().unwrap().text_handler(store_effect);
        let answer = world.deliver(&mended, MINUTE, one("m-1")).await;

        assert_eq!(answer, Ok(vec![]), "{}", case.name);
        assert_eq!(world.outcomes(), [Outcome::Processed], "{}", case.name);
        assert_eq!(
            (world.keys().await, world.effects().await),
            (1, 1),
            "{}",
            case.name
        );
    }
}

#[tokio::test]
async fn a_nested_transaction_is_a_savepoint_of_the_claims() {
    let acts: [(Act, i64); 3] = [
        (
            |c| {
                Box::pin(async move {
                    let mut nested = c.begin().await?;
                    let more = "INSERT INTO effect VALUES ('x', 'nested')";
                    sqlx::query(more).execute(&mut *nested).await?;
                    Ok(nested.commit().await?)
                })
            },
            2,
        ),
        (
            |c| {
                Box::pin(async move {
                    let mut nested = c.begin().await?;
                    sqlx::query("DELETE FROM effect")
                        .execute(&mut *nested)
                        .await?;
                    Ok(nested.rollback().await?)
                })
            },
            1,
        ),
        (
            |c| {
                Box::pin(async move {
                    let mut nested = c.begin().await?;
                    assert!(
                        sqlx::query("SELECT 1 FROM nowhere")
                            .execute(&mut *nested)
                            .await
                            .is_err()
                    );
                    Ok(nested.rollback().await?)
                })
            },
            1,
        ),
    ];
    for (act, effects) in acts {
        let world = World::new().await;
        let service = world.inbox().build().unwrap().text_handler(After(act));
        // Twice on one connection: sqlx must believe it is inside a transaction each time.
        for id in ["m-1", "m-2"] {
            assert_eq!(
                world.deliver(&service, MINUTE, one(id)).await,
                Ok(vec![]),
                "{id}"
            );
            let stored = world.effects().await;
            assert_eq!(stored, effects, "{id}");
            sqlx::query("DELETE FROM effect")
                .execute(&mut world.admin().await)
                .await
                .unwrap();
        }
        assert_eq!(world.outcomes(), [Outcome::Processed, Outcome::Processed]);
        assert_eq!(world.keys().await, 2);
    }
}

#[tokio::test]
async fn the_claim_of_another_delivery_survives_a_handler_that_ended_the_transaction() {
    // After a COMMIT the rival can only win once the first claim is pruned; then the row is another
    // transaction's, and taking it back would run the message a third time.
    for (sql, prune) in [("ROLLBACK", false), ("COMMIT; DELETE FROM effect", true)] {
        let world = World::new().await;
        let (here, there) = meeting_after(sql, Ok(()));
        let service = world.inbox().build().unwrap().text_handler(there);
        let rival = async {
            here.arrived().await;
            if prune {
                let all = "DELETE FROM lambda_inbox.inbox";
                sqlx::query(all)
                    .execute(&mut world.admin().await)
                    .await
                    .unwrap();
            }
            let rival = world.inbox().build().unwrap().text_handler(store_effect);
            assert_eq!(
                invoke(&rival, MINUTE, one("m-1")).await,
                Ok(vec![]),
                "{sql}"
            );
            here.go_on();
        };

        let (answer, ()) = tokio::join!(world.deliver(&service, MINUTE, one("m-1")), rival);

        assert_eq!(answer, Ok(vec!["m-1".to_owned()]), "{sql}");
        assert_eq!((world.keys().await, world.effects().await), (1, 1), "{sql}");
    }
}
