"""Names that stand in a broker's settings file and are not the store's business.

One `.properties` file feeds all parts of a broker, so the store meets names of the others. It must
tell them from misspelt ones of its own. The names are the setters of Apache RocketMQ 4.9.7 and of
its development branch of September 2025.
"""

from typing import Final


def _names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


WITHOUT_EFFECT: Final = _names(
    """
    debugLockEnable dLegerGroup dLegerPeers dLegerSelfId duplicationEnable enableBatchPush
    enableLmq maxLmqConsumeQueueNum preferredLeaderId storePathDLedgerCommitLog
    """
)
"""Store parameters of 4.9 that are read and do nothing here: debugging, DLedger, light queues."""

OF_LATER_RELEASES: Final = _names(
    """
    accessMessageInMemoryHotRatio allAckInSyncStateSet asyncLearner autoMessageVersionOnTopicLen
    batchDispatchRequestThreadPoolNums bottomMostCompressionTypeForConsumeQueueStore
    cleanRocksDBDirtyCQIntervalMin cleanSwapedMapInterval coldDataFlowControlEnable
    coldDataScanEnable combineAssignOffsetCQType combineCQEnableCheckSelf
    combineCQLoadingCQTypes combineCQMaxExtraSearchCommitLogFiles combineCQPreferCQType
    commitLogForceSwapMapInterval commitLogRollingInterval commitLogRollingMinimumSize
    commitLogSwapMapInterval commitLogSwapMapReserveFileNum compactionCqMappedFileSize
    compactionMappedFileSize compactionScheduleInternal compactionThreadNum
    correctLogicMinOffsetForceInterval correctLogicMinOffsetSleepInterval dataReadAheadEnable
    disappearTimeAfterStart dispatchCqCacheNum dispatchCqThreads dispatchFromSenderThread
    enableAcceleratedRecovery enableAsyncReput enableAutoInSyncReplicas
    enableBuildConsumeQueueConcurrently enableCleanExpiredOffset enableCompaction
    enabledAppendPropCRC enableLogConsumeQueueRepeatedlyBuildWhenRecover enableRocksDBLog
    enableRunningFlagsInFlush forceVerifyPropCRC haFlowControlEnable haMaxTimeSlaveNotCatchup
    inSyncReplicas logicalDiskSpaceCleanForciblyThreshold logicQueueForceSwapMapInterval
    logicQueueSwapMapInterval logicQueueSwapMapReserveFileNum mappedFileSizeTimerLog
    mappedFileSwapEnable mapperFileSizeBatchConsumeQueue maxAsyncPutMessageRequests
    maxBatchDeleteFilesNum maxChecksumRange maxConsumeQueueScan maxFilterMessageSize
    maxHaTransferByteInSecond maxOffsetMapSize maxRecoveryCommitlogFiles maxSlaveResendLength
    maxTopicLength memTableFlushIntervalMs minInSyncReplicas objectStoreAccessKey
    objectStoreBucket objectStoreEndpoint objectStoreSecretKey pullBatchMaxMessageCount
    putConsumeQueueDataByFileChannel putMessageTimeout readAheadCacheEnable
    readAheadCacheExpireDuration readAheadCacheSizeThresholdRate readAheadMessageCountThreshold
    readAheadMessageSizeThreshold readUnCommitted realTimePersistRocksDBConfig
    recheckReputOffsetFromCq recordGetMessageResult replicasPerDiskPartition
    rocksdbCompressionType rocksdbCQDoubleWriteEnable rocksdbFlushWalFrequency
    rocksdbWalFileRollingThreshold sampleCountThreshold sampleSteps searchBcqByCacheEnable
    spinLockCollisionRetreatOptimalDegree statRocksDBCQIntervalSec storePathBrokerIdentity
    storePathEpochFile storeType syncFromLastFile syncMasterFlushOffsetWhenStartup
    tieredBackendServiceProvider tieredMetadataServiceProvider tieredStorageLevel
    tieredStoreCommitLogMaxSize tieredStoreConsumeQueueMaxSize tieredStoreCrcCheckEnable
    tieredStoreDeleteFileEnable tieredStoreDeleteFileInterval tieredStoreFilePath
    tieredStoreFileReservedTime tieredStoreGroupCommit tieredStoreGroupCommitCount
    tieredStoreGroupCommitSize tieredStoreGroupCommitTimeout tieredStoreIndexFileMaxHashSlotNum
    tieredStoreIndexFileMaxIndexNum tieredStoreMaxGroupCommitCount tieredStoreMaxPendingLimit
    timerColdDataCheckIntervalMs timerCongestNumEachSlot timerEnableCheckMetrics
    timerEnableRetryUntilSuccess timerFlushIntervalMs timerGetMessageThreadNum
    timerInterceptDelayLevel timerMaxDelaySec timerMetricSmallThreshold timerPrecisionMs
    timerProgressLogIntervalMs timerPutMessageThreadNum timerRollWindowSlot
    timerSkipUnknownError timerStopEnqueue timerWheelEnable topicQueueLockNum totalReplicas
    travelCqFileNumWhenGetMessage useABSLock wakeCommitWhenPutMessage wakeFlushWhenPutMessage
    writeWithoutMmap
    """
)
"""Store parameters of 5.x for what this store does not have, or does in one way only."""

OF_THE_BROKER: Final = _names(
    """
    accountStatsEnable accountStatsPrintZeroValues ackMessageThreadPoolNums
    ackThreadPoolQueueCapacity aclCacheExpiredSecond aclCacheMaxNum aclCacheRefreshSecond
    aclEnable adminBrokerThreadPoolNums adminBrokerThreadPoolQueueCapacity
    allowRecallWhenBrokerNotWriteable appendAckAsync appendCkAsync asyncSendEnable
    authConfigPath authenticationEnabled authenticationMetadataProvider authenticationProvider
    authenticationStrategy authenticationWhitelist authorizationEnabled
    authorizationMetadataProvider authorizationProvider authorizationStrategy
    authorizationWhitelist autoCreateSubscriptionGroup autoCreateTopicEnable
    autoDeleteUnusedStats broadcastOffsetExpireMaxSecond broadcastOffsetExpireSecond
    brokerClusterName brokerConfigPath brokerElectionPriority brokerFastFailureEnable
    brokerHeartbeatInterval brokerId brokerIP1 brokerIP2 brokerName brokerNotActiveTimeoutMillis
    brokerPermission brokerTopicEnable cgColdReadThreshold channelExpiredTimeout
    checkSyncStateSetPeriod cleanOfflineBrokerInterval clearRetryTopicWhenDeleteTopic
    clientManagerThreadPoolQueueCapacity clientManageThreadPoolNums clusterName
    clusterTopicEnable coldCtrStrategyEnable commercialBaseCount commercialBigCount
    commercialEnable commercialSizePerMsg commercialTimerCount commercialTransCount
    compatibleWithOldNameSrv compressedRegister configBlackList configManagerVersion configName
    consumerFallbehindThreshold consumerManagerThreadPoolQueueCapacity
    consumerManageThreadPoolNums consumerOffsetUpdateVersionStep controllerAddr
    controllerHeartBeatTimeoutMills defaultMessageRequestMode defaultPopShareQueueNum
    defaultTopicQueueNums delayOffsetUpdateVersionStep disableConsumeIfConsumerReadSlowly
    enableBroadcastOffsetStore enableCalcFilterBitMap enableConnectionMetrics
    enableControllerMode enableCreateSysGroup enableDetailStat enableFastChannelEventProcess
    enableLagAndDlqMetrics enableLmqStats enableMessageStoreMetrics enableMixedMessageType
    enableNetWorkFlowControl enableNotifyAfterPopOrderLockRelease
    enableNotifyBeforePopCalculateLag enablePopBatchAck enablePopBufferMerge enablePopLog
    enablePopMessageThreshold enablePopMetrics enablePropertyFilter enableRegisterProducer
    enableRemoteEscape enableRemotingMetrics enableRequestMetrics enableRetryTopicV2
    enableSingleTopicRegister enableSkipLongAwaitingAck enableSlaveActingMaster
    enableSplitMetadata enableSplitRegistration enableStatsMetrics enableTransactionMetrics
    endTransactionPoolQueueCapacity endTransactionThreadPoolNums estimateAccumulation
    expectConsumerNumUseFilter fetchControllerAddrByDnsLookup fetchNamesrvAddrByAddressServer
    fetchNameSrvAddrByDnsLookup fetchNamesrvAddrInterval filterDataCleanTimeSpan
    filterServerNums filterSupportRetry flushConsumerOffsetHistoryInterval
    flushConsumerOffsetInterval forceRegister forwardTimeout globalColdReadThreshold
    heartbeatThreadPoolNums heartbeatThreadPoolQueueCapacity highSpeedMode
    initAuthenticationUser initPopOffsetByCheckMsgInMem innerClientAuthenticationCredentials
    isolateLogEnable litePullMessageEnable litePullMessageThreadPoolNums
    litePullThreadPoolQueueCapacity loadBalancePollNameServerInterval
    loadBalanceProcessorThreadPoolNums loadBalanceThreadPoolQueueCapacity lockInStrictMode
    longPollingEnable maxDelayTime maxErrorRateOfBloomFilter maxPopPollingSize
    maxStatsIdleTimeInMinutes messageStorePlugIn metricGrpcExporterIntervalInMills
    metricGrpcExporterTimeOutInMills metricLoggingExporterIntervalInMills metricsExporterType
    metricsGrpcExporterHeader metricsGrpcExporterTarget metricsInDelta metricsLabel
    metricsOtelCardinalityLimit metricsPromExporterHost metricsPromExporterPort
    migrateAuthFromV1Enabled msgTraceTopicName namesrvAddr notifyConsumerIdsChangedEnable
    popCkMaxBufferSize popCkOffsetMaxQueueSize popCkStayBufferTime popCkStayBufferTimeOut
    popConsumerFSServiceInit popConsumerKVServiceEnable popConsumerKVServiceInit
    popConsumerKVServiceLog popFromRetryProbability popInflightMessageThreshold
    popLongPollingForceNotifyInterval popPollingMapExpireTimeSeconds popPollingMapSize
    popPollingSize popResponseReturnActualRetryTopic popReviveMaxAttemptTimes
    popReviveMaxReturnSizePerRead printChannelGroups printChannelGroupsMinNum
    processReplyMessageThreadPoolNums pullMessageThreadPoolNums pullThreadPoolQueueCapacity
    putMessageFutureThreadPoolNums putThreadPoolQueueCapacity queryMessageThreadPoolNums
    queryThreadPoolQueueCapacity realTimeNotifyConsumerChange recallMessageEnable
    recoverConcurrently recoverThreadPoolNums regionId registerBrokerTimeoutMills
    registerNameServerPeriod rejectPullConsumerEnable rejectTransactionMessage
    replyThreadPoolQueueCapacity retrieveMessageFromPopRetryTopicV1 reviveAckWaitMs
    reviveInterval reviveMaxSlow reviveQueueNum reviveScanTime rmqAddressServerDomain
    rmqAddressServerSubGroup rocketmqHome sendHeartbeatTimeoutMillis sendMessageThreadPoolNums
    sendThreadPoolQueueCapacity serverLoadBalancerEnable shortPollingTimeMills skipPreOnline
    skipWhenCKRePutReachMaxTimes slaveReadEnable splitMetadataSize splitRegistrationSize
    startAcceptSendRequestTimeStamp statefulAuthenticationCacheExpiredSecond
    statefulAuthenticationCacheMaxNum statefulAuthorizationCacheExpiredSecond
    statefulAuthorizationCacheMaxNum storeReplyMessageEnable subscriptionExpiredTimeout
    syncBrokerMemberGroupPeriod syncBrokerMetadataPeriod syncControllerMetadataPeriod traceOn
    traceTopicEnable transactionCheckInterval transactionCheckMax transactionMetricFlushInterval
    transactionOpBatchInterval transactionOpMsgMaxSize transactionTimeOut transferMsgByHeap
    updateNameServerAddrPeriod usePIDColdCtrStrategy userCacheExpiredSecond userCacheMaxNum
    userCacheRefreshSecond useServerSideResetOffset useStaticSubscription
    validateSystemTopicWhenUpdateTopic waitTimeMillsInAckQueue waitTimeMillsInAdminBrokerQueue
    waitTimeMillsInHeartbeatQueue waitTimeMillsInLitePullQueue waitTimeMillsInPullQueue
    waitTimeMillsInSendQueue waitTimeMillsInTransactionQueue
    """
)
"""BrokerConfig, and what 5.x reads for access control."""

OF_THE_NETWORK: Final = _names(
    """
    bindAddress channelNotActiveInterval clientAsyncSemaphoreValue clientCallbackExecutorThreads
    clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout clientOnewaySemaphoreValue
    clientPooledByteBufAllocatorEnable clientSocketRcvBufSize clientSocketSndBufSize
    clientWorkerThreads com.rocketmq.remoting.frameMaxLength connectTimeoutMillis
    disableCallbackExecutor disableNettyWorkerGroup enableReconnectForGoAway
    enableShutdownGracefully listenPort maxReconnectIntervalTimeSeconds
    rocketmq.broker.rebalance.lockMaxLiveTime scanAvailableNameSrv serverAsyncSemaphoreValue
    serverCallbackExecutorThreads serverChannelMaxIdleTimeSeconds serverNettyWorkerGroupEnable
    serverOnewaySemaphoreValue serverPooledByteBufAllocatorEnable serverSelectorThreads
    serverSocketBacklog serverSocketRcvBufSize serverSocketSndBufSize serverWorkerThreads
    shutdownWaitTimeSeconds socksProxyConfig tls.client.authServer tls.client.certPath
    tls.client.keyPassword tls.client.keyPath tls.client.trustCertPath tls.enable
    tls.server.certPath tls.server.crlPath tls.server.keyPassword tls.server.keyPath tls.server.mode
    tls.server.need.client.auth tls.server.trustCertPath tls.test.mode.enable
    useEpollNativeSelector useTLS writeBufferHighWaterMark writeBufferLowWaterMark
    """
)
"""NettyServerConfig, NettyClientConfig; of TLS also what is ours alone (`crlPath`)."""

OF_THE_NAME_SERVER: Final = _names(
    """
    clientRequestThreadPoolNums clientRequestThreadPoolQueueCapacity clusterTest configStorePath
    defaultThreadPoolNums defaultThreadPoolQueueCapacity deleteTopicWithBrokerRegistration
    enableAllTopicList enableControllerInNamesrv enableTopicList kvConfigPath needWaitForService
    notifyMinBrokerIdChanged orderMessageEnable productEnvName returnOrderTopicConfigToBroker
    scanNotActiveBrokerInterval supportActingMaster unRegisterBrokerQueueCapacity
    waitSecondsForService
    """
)
"""NamesrvConfig, with the controller that 5.x runs in it."""

OF_COPIED_FILES: Final = _names(
    """
    abortFile checkTransactionMessageEnable storeCheckpoint storePathConsumeQueue storePathIndex
    """
)
"""Names that no release reads and half the files in use have: they go from hand to hand."""

OF_THE_CONTROLLER: Final = _names(
    """
    controllerDLegerGroup controllerDLegerPeers controllerDLegerSelfId
    controllerRequestThreadPoolQueueCapacity controllerStorePath controllerThreadPoolNums
    controllerType electMasterMaxRetryCount enableElectUncleanMaster mappedFileSize
    notifyBrokerRoleChanged scanInactiveMasterInterval
    """
)
"""ControllerConfig, which may stand in a name server's file."""

OF_THIS_BROKER: Final = _names(
    """
    aclBrokerAccessKey aclPath brokerDraining coldReadsPerGroup failoverEtcd failoverEtcdCertPath
    failoverEtcdKeyPath failoverEtcdPasswordFile failoverEtcdTrustCertPath failoverEtcdUser
    failoverId failoverLeaseSeconds failoverUnsafeElection haTlsCertPath haTlsKeyPath
    haTlsTrustCertPath handOverLingerMillis insecure lockMaxLiveTime logFormat maxConnections
    maxConnectionsPerAddress maxConnectionsPerUser metadataInLog metricsBindAddress metricsPort
    metricsSeriesMax offsetBeyondEnd quotaGroupReadBytes quotaGroupReadRequests
    quotaTopicReadBytes quotaTopicReadRequests quotaTopicSendBytes quotaTopicSendRequests
    quotaUserReadBytes quotaUserReadRequests quotaUserSendBytes quotaUserSendRequests usersFile
    usersKeyFile
    """
)
"""What a broker of ours may be told and Apache's may not; who reads a store with its broker's file
meets them. A test says if one is missing."""

FOREIGN: Final = (
    WITHOUT_EFFECT
    | OF_LATER_RELEASES
    | OF_COPIED_FILES
    | OF_THE_BROKER
    | OF_THE_NETWORK
    | OF_THE_NAME_SERVER
    | OF_THIS_BROKER
)
"""Every name that the store passes over."""
