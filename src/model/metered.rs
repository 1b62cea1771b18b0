//! The run's budget, ledger and stop for a model that makes no HTTP calls of its own.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::meter::Meter;
use super::{ChatModel, ChatRequest, Exchange, Failure, ModelContext, ModelError, ModelIdentity, Role};

/// A model whose calls count.
#[derive(Debug)]
pub(crate) struct Metered {
    role: Role,
    inner: Arc<dyn ChatModel>,
    meter: Arc<Meter>,
    cancel: CancellationToken,
}

impl Metered {
    pub(crate) fn new(role: Role, inner: Arc<dyn ChatModel>, context: &ModelContext) -> Self {
        Self { role, inner, meter: Arc::clone(&context.meter), cancel: context.cancel.clone() }
    }

    fn error(&self, failure: Failure, message: String) -> ModelError {
        ModelError { role: self.role, failure, message, attempts: 0 }
    }
}

impl ChatModel for Metered {
    fn identity(&self) -> &ModelIdentity {
        self.inner.identity()
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        Box::pin(async move {
            if self.cancel.is_cancelled() {
                return Err(self.error(Failure::Cancelled, "the run was asked to stop".to_owned()));
            }
            let ticket =
                self.meter.admit(self.role).map_err(|message| self.error(Failure::Budget, message))?;
            let exchange = self.inner.reply(request).await;
            drop(ticket);
            let exchange = exchange?;
            self.meter.record(self.role, self.identity(), &request.id, &exchange);
            Ok(exchange)
        })
    }

    fn open<'a>(&'a self, conversation: &'a str) -> BoxFuture<'a, Result<Option<String>, ModelError>> {
        self.inner.open(conversation)
    }

    fn opens(&self) -> bool {
        self.inner.opens()
    }

    fn close<'a>(&'a self, conversation: &'a str) -> BoxFuture<'a, Result<(), ModelError>> {
        self.inner.close(conversation)
    }
}
